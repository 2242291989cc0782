// See chat_reply.h. A delta has one kind of text, or none; keys without a value are left
// out, and after the role no delta is empty but the last. A call is opened by a delta with its id
// and whole name; later ones carry pieces of its arguments.
#include "api/openai/chat_reply.h"

#include <fmt/format.h>

#include <utility>

#include "api/fields/json_text.h"
#include "api/openai/openai_reply.h"

namespace sluice {
namespace {

namespace json = boost::json;

constexpr std::string_view kInlineOpen = "<think>\n";
constexpr std::string_view kInlineClose = "\n</think>\n\n";

void put_reasoning(ReasoningFormat format, const std::string& text, json::object& object) {
  if (format != ReasoningFormat::reasoning) {
    object["reasoning_content"] = text;
  }
  if (format != ReasoningFormat::reasoning_content) {
    object["reasoning"] = text;
  }
}

// A limit wins over a call: what was cut must not be run.
json::string finish_reason(const AnswerEnd& end) {
  const bool calls = end.reason == FinishReason::stop && end.has_complete_call;
  return calls ? json::string("tool_calls") : finish_reason_json(end.reason);
}

json::object call_json(const CallHead& call, const std::string& arguments) {
  return json::object{{"id", call.id},
                      {"type", "function"},
                      {"function", json::object{{"name", call.name}, {"arguments", arguments}}}};
}

json::array calls_json(const ChoiceAnswer& answer) {
  json::array calls;
  for (const AnswerDelta& part : answer.parts) {
    if (part.call) {
      calls.push_back(call_json(*part.call, part.text));
    }
  }
  return calls;
}

}  // namespace

ChatReply::ChatReply(ReplyHead head, ChatReplyOptions options, TokenBytes token_bytes)
    : head_(std::move(head)),
      options_(std::move(options)),
      token_bytes_(std::move(token_bytes)),
      inline_reasoning_open_(options_.choices, false),
      call_counts_(options_.choices, 0) {}

std::vector<SseEvent> ChatReply::begin(const AnswerUsage& usage) {
  std::vector<SseEvent> events;
  for (std::size_t choice = 0; choice < options_.choices; ++choice) {
    json::object role{{"role", "assistant"}, {"content", ""}};
    json::object whole_chunk = chunk(json::array{chunk_choice(choice, std::move(role), {})}, usage);
    if (choice == 0 && options_.return_token_ids) {
      whole_chunk["prompt_token_ids"] = token_ids_json(options_.prompt_token_ids);
    }
    events.push_back({"", to_json(whole_chunk)});
  }
  return events;
}

std::vector<SseEvent> ChatReply::delta(std::size_t choice, const AnswerDelta& delta,
                                       std::span<const TokenId> token_ids,
                                       const AnswerUsage& usage) {
  std::vector<SseEvent> events;
  if (delta.call && inline_reasoning_open_[choice]) {
    inline_reasoning_open_[choice] = false;
    json::object close{{"content", kInlineClose}};
    events.push_back(
        {"", to_json(chunk(json::array{chunk_choice(choice, std::move(close), {})}, usage))});
  }
  json::object object = delta_object(choice, delta);
  const bool is_content = delta.part == AnswerPart::content;
  const bool has_logprobs =
      !delta.tokens.empty() && options_.logprobs && (is_content || options_.include_reasoning);
  if (object.empty() && token_ids.empty() && !has_logprobs) {
    return events;
  }
  json::object entry = chunk_choice(choice, std::move(object), token_ids);
  if (has_logprobs) {
    const std::span<const TokenEvent> none;
    entry["logprobs"] = is_content ? logprobs(delta.tokens, none) : logprobs(none, delta.tokens);
  }
  events.push_back({"", to_json(chunk(json::array{std::move(entry)}, usage))});
  return events;
}

std::vector<SseEvent> ChatReply::end(std::size_t choice, const AnswerEnd& end,
                                     std::span<const TokenId> token_ids, const AnswerUsage& usage) {
  json::object entry = chunk_choice(choice, {}, token_ids);
  entry["finish_reason"] = finish_reason(end);
  entry["stop_reason"] = stop_reason_json(end);
  json::object object = chunk(json::array{std::move(entry)}, usage);
  if (end.timings) {
    object["timings"] = timings_json(end);
  }
  return {{"", to_json(object)}};
}

std::vector<SseEvent> ChatReply::finish(const AnswerUsage& usage) {
  std::vector<SseEvent> events;
  if (options_.include_usage) {
    json::object object = chunk({}, usage);
    object["usage"] = usage_json(usage);
    events.push_back({"", to_json(object)});
  }
  events.push_back({"", "[DONE]"});
  return events;
}

std::vector<SseEvent> ChatReply::fail(const std::string& error_json) {
  return {{"", error_json}, {"", "[DONE]"}};
}

std::string ChatReply::whole(std::span<const ChoiceAnswer> choices, const AnswerUsage& usage) {
  json::array list;
  for (std::size_t i = 0; i < choices.size(); ++i) {
    const ChoiceAnswer& answer = choices[i];
    json::object choice{{"index", i},
                        {"message", message(answer)},
                        {"logprobs", nullptr},
                        {"finish_reason", finish_reason(answer.end)},
                        {"stop_reason", stop_reason_json(answer.end)}};
    if (options_.logprobs) {
      const auto reasoning = options_.include_reasoning ? answer.tokens_of(AnswerPart::reasoning)
                                                        : std::vector<TokenEvent>();
      choice["logprobs"] = logprobs(answer.tokens_of(AnswerPart::content), reasoning);
    }
    if (options_.return_token_ids) {
      choice["token_ids"] = token_ids_json(answer.token_ids);
    }
    list.push_back(std::move(choice));
  }
  json::object reply = head_json("chat.completion");
  reply["choices"] = std::move(list);
  reply["usage"] = usage_json(usage);
  if (options_.return_token_ids) {
    reply["prompt_token_ids"] = token_ids_json(options_.prompt_token_ids);
  }
  if (!choices.empty() && choices.front().end.timings) {
    reply["timings"] = timings_json(choices.front().end);
  }
  return to_json(reply);
}

json::object ChatReply::delta_object(std::size_t choice, const AnswerDelta& delta) {
  json::object object;
  if (delta.part == AnswerPart::call) {
    return call_delta(choice, delta);
  }
  if (delta.text.empty()) {
    return object;
  }
  const bool inline_tags = options_.reasoning_format == ReasoningFormat::inline_tags;
  if (delta.part == AnswerPart::reasoning) {
    if (!options_.include_reasoning) {
      return object;
    }
    if (!inline_tags) {
      put_reasoning(options_.reasoning_format, delta.text, object);
      return object;
    }
    const bool opened = inline_reasoning_open_[choice];
    inline_reasoning_open_[choice] = true;
    object["content"] = (opened ? std::string() : std::string(kInlineOpen)) + delta.text;
    return object;
  }
  const bool closes = inline_reasoning_open_[choice];
  inline_reasoning_open_[choice] = false;
  object["content"] = (closes ? std::string(kInlineClose) : std::string()) + delta.text;
  return object;
}

json::object ChatReply::call_delta(std::size_t choice, const AnswerDelta& delta) {
  json::object call;
  if (delta.call) {
    call["index"] = call_counts_[choice]++;
    call["id"] = delta.call->id;
    call["type"] = "function";
    call["function"] = json::object{{"name", delta.call->name}, {"arguments", delta.text}};
  } else if (!delta.text.empty()) {
    call["index"] = call_counts_[choice] - 1;
    call["function"] = json::object{{"arguments", delta.text}};
  } else {
    return call;
  }
  return json::object{{"tool_calls", json::array{std::move(call)}}};
}

json::object ChatReply::chunk(json::array choices, const AnswerUsage& usage) const {
  json::object object = head_json("chat.completion.chunk");
  object["choices"] = std::move(choices);
  if (options_.continuous_usage) {
    object["usage"] = usage_json(usage);
  } else if (options_.include_usage) {
    object["usage"] = nullptr;
  }
  return object;
}

json::object ChatReply::head_json(json::string_view object) const {
  json::object head = reply_head_json(head_, object);
  if (options_.service_tier) {
    head["service_tier"] = "default";
  }
  return head;
}

json::object ChatReply::chunk_choice(std::size_t choice, json::object delta,
                                     std::span<const TokenId> token_ids) const {
  json::object entry{{"index", choice},
                     {"delta", std::move(delta)},
                     {"logprobs", nullptr},
                     {"finish_reason", nullptr}};
  if (options_.return_token_ids) {
    entry["token_ids"] = token_ids_json(token_ids);
  }
  return entry;
}

json::object ChatReply::message(const ChoiceAnswer& answer) const {
  json::object object{{"role", "assistant"}, {"content", nullptr}, {"refusal", nullptr}};
  std::string content = answer.text_of(AnswerPart::content);
  json::array calls = calls_json(answer);
  const std::string reasoning = answer.text_of(AnswerPart::reasoning);
  const bool returns_reasoning = !reasoning.empty() && options_.include_reasoning;
  if (returns_reasoning && options_.reasoning_format == ReasoningFormat::inline_tags) {
    const bool closed = !content.empty() || !calls.empty();
    content = fmt::format("{}{}{}{}", kInlineOpen, reasoning, closed ? kInlineClose : "", content);
  } else if (returns_reasoning) {
    put_reasoning(options_.reasoning_format, reasoning, object);
  }
  if (!content.empty() || calls.empty()) {
    object["content"] = content;
  }
  if (!calls.empty()) {
    object["tool_calls"] = std::move(calls);
  }
  return object;
}

json::value ChatReply::logprobs(std::span<const TokenEvent> content,
                                std::span<const TokenEvent> reasoning) const {
  if (!options_.logprobs) {
    return nullptr;
  }
  json::object object{{"content", token_logprobs_json(content, token_bytes_)},
                      {"refusal", nullptr}};
  if (!reasoning.empty()) {
    object["reasoning"] = token_logprobs_json(reasoning, token_bytes_);
  }
  return object;
}

}  // namespace sluice
