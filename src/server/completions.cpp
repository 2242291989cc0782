// See completions.h. Choice index = prompt index * n + k.
#include "server/completions.h"

#include <fmt/format.h>

#include <utility>

#include "api/openai/completions.h"
#include "server/error_map.h"
#include "server/generation_plan.h"
#include "server/plan_exchange.h"
#include "text/incremental_decoder.h"
#include "text/middle_tokens.h"

namespace sluice {
namespace {

// Appends the tokens of a text; `param` names the field it came from.
std::optional<ApiError> append_text(const Backend& backend, const CompletionRequest& request,
                                    const std::string& owner, const std::string& text,
                                    const char* param, std::vector<TokenId>& token_ids) {
  PromptText prompt{.text = text, .literal_ranges = {}, .owner = owner};
  if (!request.parse_special) {
    prompt.literal_ranges.emplace_back(0, text.size());
  }
  const auto ids = backend.model->tokenizer.encode(prompt);
  if (!ids) {
    return prompt_error(ids.error(), param);
  }
  token_ids.insert(token_ids.end(), ids->begin(), ids->end());
  return std::nullopt;
}

ApiResult<std::vector<TokenId>> encode_prompt(const Backend& backend,
                                              const CompletionRequest& request,
                                              const CompletionPrompt& prompt,
                                              const HttpRequest& http) {
  if (const auto* ids = std::get_if<std::vector<TokenId>>(&prompt)) {
    return *ids;
  }
  const auto middle = MiddleTokens::of(backend.model->tokenizer);
  if (request.suffix && !middle) {
    return api_fail(ApiErrorKind::unsupported_parameter,
                    "suffix is not supported: this model has no tokens for filling in the middle",
                    "suffix");
  }
  std::vector<TokenId> token_ids;
  if (request.suffix) {
    token_ids.push_back(middle->prefix);
  }
  const std::string owner = cache_owner(backend, request.generation, http);
  const std::string& text = std::get<std::string>(prompt);
  if (const auto error = append_text(backend, request, owner, text, "prompt", token_ids)) {
    return std::unexpected(*error);
  }
  if (request.suffix) {
    token_ids.push_back(middle->suffix);
    if (const auto error =
            append_text(backend, request, owner, *request.suffix, "suffix", token_ids)) {
      return std::unexpected(*error);
    }
    token_ids.push_back(middle->middle);
  }
  return token_ids;
}

// The middle ends where the model begins something else.
GenerationFields generation_of(const Backend& backend, const CompletionRequest& request) {
  GenerationFields fields = request.generation;
  const auto middle = MiddleTokens::of(backend.model->tokenizer);
  if (request.suffix && middle && !fields.ignore_eos) {
    fields.stop_token_ids.insert(fields.stop_token_ids.end(), middle->ends.begin(),
                                 middle->ends.end());
  }
  return fields;
}

// The prompt as text: the string itself, or what the tokens stand for.
ApiResult<std::string> echo_of(const Backend& backend, const CompletionRequest& request,
                               const CompletionPrompt& prompt) {
  if (!request.echo) {
    return std::string();
  }
  if (const auto* text = std::get_if<std::string>(&prompt)) {
    return *text;
  }
  auto text = backend.model->tokenizer.decode(std::get<std::vector<TokenId>>(prompt), false);
  if (!text) {
    return std::unexpected(prompt_error(text.error(), "prompt"));
  }
  return std::move(*text);
}

// What the tokens of a choice add to its text, as choice_run decodes the answer and echo_of() the
// prompt.
CompletionText text_of(const Backend& backend, const CompletionRequest& request,
                       const std::string& echo, std::int64_t prompt_tokens) {
  const auto decoded = [&backend](bool skip_special_tokens) -> CompletionText::TextOf {
    IncrementalDecoder decoder(backend.model->tokenizer, skip_special_tokens);
    return [decoder](TokenId id) mutable { return decoder.append(id); };
  };
  CompletionText text{.answer = decoded(request.generation.skip_special_tokens)};
  if (request.scores_prompt()) {
    text.prompt = decoded(false);
    text.prompt_tokens = prompt_tokens;
    text.prompt_characters = character_count(echo);
  }
  return text;
}

// Adds the sequences and reply options of one prompt.
std::optional<ApiError> add_prompt(const Backend& backend, const CompletionRequest& request,
                                   const CompletionPrompt& prompt, const HttpRequest& http,
                                   GenerationPlan& plan, CompletionReplyOptions& options) {
  const auto token_ids = encode_prompt(backend, request, prompt, http);
  if (!token_ids) {
    return token_ids.error();
  }
  const auto echo = echo_of(backend, request, prompt);
  if (!echo) {
    return echo.error();
  }
  const GenerationFields fields = generation_of(backend, request);
  const auto tokens_max = answer_tokens_max(backend, http, ApiDialect::openai, fields,
                                            std::ssize(*token_ids), "prompt");
  if (!tokens_max) {
    return tokens_max.error();
  }
  const AnswerRules rules{.stop = fields.stop,
                          .keep_stop_text = fields.keep_stop_text,
                          .all_tokens = fields.logprobs >= 0};
  for (PlannedSequence& sequence :
       plan_sequences(backend, fields, http, *token_ids, *tokens_max, rules)) {
    if (request.scores_prompt()) {
      sequence.request.prompt_logprobs = fields.logprobs;
      if (*tokens_max == 1) {  // harnesses count on one entry more than the prompt has
        sequence.request.stop.ignore_eos = true;
      }
      sequence.scored_echo = *echo;
    } else if (!echo->empty()) {
      sequence.opening.push_back({.part = AnswerPart::content, .text = *echo});
    }
    plan.sequences.push_back(std::move(sequence));
    if (options.logprobs) {
      options.texts.push_back(text_of(backend, request, *echo, std::ssize(*token_ids)));
    }
    if (fields.return_token_ids) {
      options.prompt_token_ids.push_back(*token_ids);
    }
  }
  return std::nullopt;
}

ApiResult<GenerationPlan> plan_completion(const Backend& backend, const HttpRequest& http,
                                          std::string body) {
  if (!backend.config->raw_completions) {
    return api_fail(
        ApiErrorKind::forbidden,
        "raw completions are turned off on this server; chat is at /v1/chat/completions", "");
  }
  if (const auto error = check_admission(backend)) {
    return std::unexpected(*error);
  }
  auto request = parse_completion_request(std::move(body), request_limits(backend));
  if (!request) {
    return std::unexpected(std::move(request).error());
  }
  const GenerationFields& fields = request->generation;
  if (const auto error = check_model(backend, fields)) {
    return std::unexpected(*error);
  }
  GenerationPlan plan = make_plan(fields, http);
  CompletionReplyOptions options{.include_usage = fields.include_usage,
                                 .continuous_usage = fields.continuous_usage,
                                 .logprobs = fields.logprobs >= 0,
                                 .return_token_ids = fields.return_token_ids};
  for (const CompletionPrompt& prompt : request->prompts) {
    if (const auto error = add_prompt(backend, *request, prompt, http, plan, options)) {
      return std::unexpected(*error);
    }
  }
  if (const auto error = check_sequence_count(backend, plan, "prompt")) {
    return std::unexpected(*error);
  }
  plan.format = std::make_unique<CompletionReply>(make_reply_head(backend, fields, "cmpl-"),
                                                  std::move(options), token_bytes_of(backend));
  plan.ignored = std::move(request->ignored);
  return plan;
}

}  // namespace

void handle_completions(const Backend& backend, const std::shared_ptr<Exchange>& exchange) {
  generate_from(backend, exchange, ApiDialect::openai, plan_completion);
}

}  // namespace sluice
