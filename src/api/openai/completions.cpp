#include "api/openai/completions.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "api/fields/json_text.h"
#include "api/openai/openai_reply.h"

namespace sluice {
namespace {

namespace json = boost::json;

void fail_prompt(FieldReport& report, const std::string& path, const json::value& seen) {
  report.fail(ApiErrorKind::invalid_type,
              fmt::format("{} is {}, want a string, an array of strings, an array of token ids or "
                          "an array of those",
                          path, json_type_name(seen)),
              path);
}

// One prompt of a list of prompts.
void add_prompt(const json::value& value, const std::string& path, const RequestLimits& limits,
                FieldReport& report, CompletionRequest& request) {
  if (value.is_string()) {
    request.prompts.emplace_back(std::string(value.get_string()));
  } else if (value.is_array()) {
    request.prompts.emplace_back(read_token_ids(value.get_array(), path, limits, report));
  } else {
    fail_prompt(report, path, value);
  }
}

void read_prompts(JsonFields& body, const RequestLimits& limits, CompletionRequest& request) {
  FieldReport& report = body.report();
  const json::value* prompt = body.find("prompt");
  if (prompt == nullptr) {
    report.fail(ApiErrorKind::missing_parameter, "prompt is required", "prompt");
    return;
  }
  if (!prompt->is_array()) {
    add_prompt(*prompt, "prompt", limits, report, request);
    return;
  }
  const json::array& list = prompt->get_array();
  if (!list.empty() && list[0].is_number()) {
    add_prompt(*prompt, "prompt", limits, report, request);
    return;
  }
  if (list.empty() || static_cast<std::int64_t>(list.size()) > kCompletionPromptsMax) {
    report.fail(
        ApiErrorKind::invalid_value,
        fmt::format("prompt has {} entries, want 1 to {}", list.size(), kCompletionPromptsMax),
        "prompt");
    return;
  }
  for (std::size_t i = 0; i < list.size(); ++i) {
    add_prompt(list[i], fmt::format("prompt[{}]", i), limits, report, request);
  }
}

// An empty one is as good as none: editors send it at the end of a file.
void read_suffix(JsonFields& body, CompletionRequest& request) {
  auto suffix = body.string("suffix");
  if (!suffix || suffix->empty()) {
    return;
  }
  const auto is_text = [](const CompletionPrompt& prompt) {
    return std::holds_alternative<std::string>(prompt);
  };
  if (!std::ranges::all_of(request.prompts, is_text)) {
    body.report().fail(ApiErrorKind::invalid_value,
                       "suffix needs prompts that are strings, not tokens", "suffix");
  }
  request.suffix = std::move(suffix);
}

void check_prompts_not_empty(const CompletionRequest& request, FieldReport& report) {
  if (request.suffix) {
    return;  // the middle may begin the file
  }
  for (const CompletionPrompt& prompt : request.prompts) {
    if (std::visit([](const auto& value) { return value.empty(); }, prompt)) {
      report.fail(ApiErrorKind::invalid_value, "prompt is empty, want at least one token",
                  "prompt");
    }
  }
}

CompletionRequest read_completion(JsonFields& body, const RequestLimits& limits) {
  FieldReport& report = body.report();
  CompletionRequest request;
  request.generation = read_generation_fields(body, limits);
  if (body.has("max_tokens") || body.has("max_completion_tokens")) {
    request.generation.tokens_max = read_tokens_max(body, {"max_completion_tokens", "max_tokens"});
  } else {
    request.generation.tokens_max = kCompletionTokensDefault;
  }
  if (const auto count = body.integer("logprobs", {0, kCompletionLogprobsMax})) {
    request.generation.logprobs = static_cast<std::int32_t>(*count);
  }
  read_prompts(body, limits, request);
  read_suffix(body, request);
  check_prompts_not_empty(request, report);
  request.parse_special = body.boolean("parse_special").value_or(true);
  request.echo = body.boolean("echo").value_or(false);
  if (request.scores_prompt() && request.suffix) {
    report.fail(ApiErrorKind::unsupported_parameter,
                "suffix with echo and logprobs is not supported: its prompt is not only text",
                "suffix");
  }
  return request;
}

}  // namespace

ApiResult<CompletionRequest> parse_completion_request(std::string body_text,
                                                      const RequestLimits& limits) {
  CompletionRequest request;
  auto ignored = read_body(std::move(body_text),
                           [&](JsonFields& body) { request = read_completion(body, limits); });
  if (!ignored) {
    return std::unexpected(std::move(ignored).error());
  }
  request.ignored = std::move(*ignored);
  return request;
}

std::int64_t character_count(std::string_view text) {
  return std::count_if(text.begin(), text.end(),
                       [](char byte) { return (static_cast<unsigned char>(byte) & 0xC0) != 0x80; });
}

CompletionReply::CompletionReply(ReplyHead head, CompletionReplyOptions options,
                                 TokenBytes token_bytes)
    : head_(std::move(head)), options_(std::move(options)), token_bytes_(std::move(token_bytes)) {}

std::vector<SseEvent> CompletionReply::begin(const AnswerUsage& usage) {
  std::vector<SseEvent> events;
  for (std::size_t choice = 0; choice < options_.prompt_token_ids.size(); ++choice) {
    json::object entry = choice_object(choice, "", {}, {});
    entry["prompt_token_ids"] = token_ids_json(options_.prompt_token_ids[choice]);
    events.push_back({"", chunk(json::array{std::move(entry)}, usage)});
  }
  return events;
}

std::vector<SseEvent> CompletionReply::delta(std::size_t choice, const AnswerDelta& delta,
                                             std::span<const TokenId> token_ids,
                                             const AnswerUsage& usage) {
  if (delta.text.empty() && delta.tokens.empty() && token_ids.empty()) {
    return {};
  }
  json::object entry = choice_object(choice, delta.text, delta.tokens, token_ids);
  return {{"", chunk(json::array{std::move(entry)}, usage)}};
}

std::vector<SseEvent> CompletionReply::end(std::size_t choice, const AnswerEnd& end,
                                           std::span<const TokenId> token_ids,
                                           const AnswerUsage& usage) {
  json::object entry = choice_object(choice, "", {}, token_ids);
  entry["finish_reason"] = finish_reason_json(end.reason);
  entry["stop_reason"] = stop_reason_json(end);
  if (end.timings) {
    entry["timings"] = timings_json(end);
  }
  return {{"", chunk(json::array{std::move(entry)}, usage)}};
}

std::vector<SseEvent> CompletionReply::finish(const AnswerUsage& usage) {
  std::vector<SseEvent> events;
  if (options_.include_usage) {
    json::object object = reply_head_json(head_, "text_completion");
    object["choices"] = json::array{};
    object["usage"] = usage_json(usage);
    events.push_back({"", to_json(object)});
  }
  events.push_back({"", "[DONE]"});
  return events;
}

std::vector<SseEvent> CompletionReply::fail(const std::string& error_json) {
  return {{"", error_json}, {"", "[DONE]"}};
}

std::string CompletionReply::whole(std::span<const ChoiceAnswer> choices,
                                   const AnswerUsage& usage) {
  json::array list;
  for (std::size_t i = 0; i < choices.size(); ++i) {
    const ChoiceAnswer& answer = choices[i];
    json::object entry = choice_object(i, answer.text_of(AnswerPart::content),
                                       answer.tokens_of(AnswerPart::content), answer.token_ids);
    entry["finish_reason"] = finish_reason_json(answer.end.reason);
    entry["stop_reason"] = stop_reason_json(answer.end);
    if (options_.return_token_ids) {
      entry["prompt_token_ids"] = token_ids_json(options_.prompt_token_ids[i]);
    }
    if (answer.end.timings) {
      entry["timings"] = timings_json(answer.end);
    }
    list.push_back(std::move(entry));
  }
  json::object reply = reply_head_json(head_, "text_completion");
  reply["choices"] = std::move(list);
  reply["usage"] = usage_json(usage);
  return to_json(reply);
}

std::string CompletionReply::chunk(json::array choices, const AnswerUsage& usage) const {
  json::object object = reply_head_json(head_, "text_completion");
  object["choices"] = std::move(choices);
  if (options_.continuous_usage) {
    object["usage"] = usage_json(usage);
  } else if (options_.include_usage) {
    object["usage"] = nullptr;
  }
  return to_json(object);
}

json::object CompletionReply::choice_object(std::size_t choice, std::string_view text,
                                            std::span<const TokenEvent> tokens,
                                            std::span<const TokenId> token_ids) {
  json::object entry{{"index", choice},
                     {"text", json::string_view(text.data(), text.size())},
                     {"logprobs", nullptr},
                     {"finish_reason", nullptr}};
  if (options_.logprobs) {
    entry["logprobs"] = logprobs(choice, tokens);
  }
  if (options_.return_token_ids) {
    entry["token_ids"] = token_ids_json(token_ids);
  }
  return entry;
}

json::object CompletionReply::logprobs(std::size_t choice, std::span<const TokenEvent> tokens) {
  json::array texts;
  json::array values;
  json::array tops;
  json::array offsets;
  for (const TokenEvent& token : tokens) {
    const std::string text = replace_invalid_utf8(token_bytes_(token.token_id));
    offsets.push_back(next_offset(choice, token.token_id));
    texts.push_back(json::string(text));
    if (!token.logprob) {  // the first of a prompt
      values.push_back(nullptr);
      tops.push_back(nullptr);
      continue;
    }
    const double logprob = finite_logprob(*token.logprob);
    json::object top;
    for (const TokenLogprob& candidate : token.top_logprobs) {
      top[replace_invalid_utf8(token_bytes_(candidate.token_id))] =
          finite_logprob(candidate.logprob);
    }
    top[text] = logprob;
    values.push_back(logprob);
    tops.push_back(std::move(top));
  }
  return json::object{{"tokens", std::move(texts)},
                      {"token_logprobs", std::move(values)},
                      {"top_logprobs", std::move(tops)},
                      {"text_offset", std::move(offsets)}};
}

// Where the token's text begins: the tokens of one character begin where it does, a token that is
// not shown where the next text does. The echo of a string is that string, which may be spelled
// otherwise than its tokens: the answer begins behind it all the same.
std::int64_t CompletionReply::next_offset(std::size_t choice, TokenId token_id) {
  const CompletionText& text = options_.texts[choice];
  Place& place = places_[choice];
  const bool in_prompt = place.tokens < text.prompt_tokens;
  const std::int64_t offset =
      in_prompt ? std::min(place.characters, text.prompt_characters) : place.characters;
  place.characters += character_count(in_prompt ? text.prompt(token_id) : text.answer(token_id));
  if (++place.tokens == text.prompt_tokens) {
    place.characters = text.prompt_characters;
  }
  return offset;
}

}  // namespace sluice
