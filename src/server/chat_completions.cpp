// Parse, render, encode, check the length, generate: in this order, so that every error a request
// can have is found before the reply begins.
#include "server/chat_completions.h"

#include <utility>

#include "api/chat_prompt.h"
#include "api/openai_chat_reply.h"
#include "server/error_map.h"
#include "server/generation_plan.h"
#include "server/generation_run.h"

namespace sluice {
namespace {

// The continued turn, said again at the head of the answer.
std::vector<AnswerDelta> echo_of(const ChatRequest& request) {
  std::vector<AnswerDelta> deltas;
  if (!request.echo || !request.continuation) {
    return deltas;
  }
  const TurnContinuation& turn = *request.continuation;
  if (!turn.reasoning.empty()) {
    deltas.push_back({AnswerPart::reasoning, turn.reasoning, {}});
  }
  if (!turn.text.empty()) {
    deltas.push_back(
        {turn.reasoning_open ? AnswerPart::reasoning : AnswerPart::content, turn.text, {}});
  }
  return deltas;
}

ApiResult<GenerationPlan> plan_chat(const Backend& backend, const HttpRequest& http,
                                    std::string body) {
  if (const auto error = check_admission(backend)) {
    return std::unexpected(*error);
  }
  auto parsed = parse_chat_request(std::move(body), backend.config->chat, request_limits(backend));
  if (!parsed) {
    return std::unexpected(std::move(parsed).error());
  }
  ChatRequest& request = *parsed;
  const GenerationFields& fields = request.generation;
  if (const auto error = check_model(backend, fields)) {
    return std::unexpected(*error);
  }
  const Tokenizer& tokenizer = backend.model->tokenizer;
  const auto prompt = make_chat_prompt(request, backend.model->chat_template, tokenizer);
  if (!prompt) {
    return std::unexpected(prompt_error(prompt.error(), "messages"));
  }
  const auto token_ids = tokenizer.encode(prompt->text);
  if (!token_ids) {
    return std::unexpected(prompt_error(token_ids.error(), "messages"));
  }
  const auto tokens_max = answer_tokens_max(backend, fields, std::ssize(*token_ids), "messages");
  if (!tokens_max) {
    return std::unexpected(tokens_max.error());
  }
  const AnswerRules rules{.starts_inside_reasoning = prompt->reasoning_open,
                          .stop = fields.stop,
                          .stop_everywhere = fields.stop_everywhere,
                          .keep_stop_text = fields.keep_stop_text};
  GenerationPlan plan = make_plan(fields, http);
  plan.sequences = plan_sequences(backend, fields, http, *token_ids, *tokens_max, rules);
  if (const auto error = check_sequence_count(backend, plan, "n")) {
    return std::unexpected(*error);
  }
  for (PlannedSequence& sequence : plan.sequences) {
    sequence.opening = echo_of(request);
  }
  ChatReplyOptions options{.reasoning_format = request.reasoning_format,
                           .include_reasoning = request.include_reasoning,
                           .include_usage = fields.include_usage,
                           .continuous_usage = fields.continuous_usage,
                           .logprobs = fields.logprobs >= 0,
                           .return_token_ids = fields.return_token_ids,
                           .choices = plan.sequences.size()};
  if (fields.return_token_ids) {
    options.prompt_token_ids = *token_ids;
  }
  plan.format = std::make_unique<ChatReply>(make_reply_head(backend, fields, "chatcmpl-"),
                                            std::move(options), token_bytes_of(backend));
  plan.ignored = std::move(request.ignored);
  return plan;
}

}  // namespace

void handle_chat_completions(const Backend& backend, const std::shared_ptr<Exchange>& exchange) {
  auto plan = plan_chat(backend, exchange->request(), exchange->take_body());
  if (plan) {
    start_generation(backend, exchange, std::move(*plan));
  } else {
    exchange->reply(openai_error_response(plan.error()));
  }
}

}  // namespace sluice
