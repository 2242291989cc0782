// Parse, render, encode, check the length, generate: in this order, so that every error a request
// can have is found before the reply begins.
#include "server/chat_completions.h"

#include <utility>

#include "api/openai/chat_reply.h"
#include "server/chat_plan.h"
#include "server/plan_exchange.h"

namespace sluice {
namespace {

constexpr const char* kParam = "messages";

ApiResult<GenerationPlan> plan_completion(const Backend& backend, const HttpRequest& http,
                                          std::string body) {
  if (const auto error = check_admission(backend)) {
    return std::unexpected(*error);
  }
  const auto request =
      parse_chat_request(std::move(body), backend.config->chat, request_limits(backend));
  if (!request) {
    return std::unexpected(request.error());
  }
  const auto encoded = encode_chat(backend, http, *request, kParam);
  if (!encoded) {
    return std::unexpected(encoded.error());
  }
  auto plan = plan_chat(backend, http, ApiDialect::openai, *request, *encoded, kParam);
  if (!plan) {
    return plan;
  }
  const GenerationFields& fields = request->generation;
  ChatReplyOptions options{.reasoning_format = request->reasoning_format,
                           .include_reasoning = request->include_reasoning,
                           .include_usage = fields.include_usage,
                           .continuous_usage = fields.continuous_usage,
                           .logprobs = fields.logprobs >= 0,
                           .return_token_ids = fields.return_token_ids,
                           .service_tier = request->names_service_tier,
                           .choices = plan->sequences.size()};
  if (fields.return_token_ids) {
    options.prompt_token_ids = encoded->token_ids;
  }
  plan->format = std::make_unique<ChatReply>(make_reply_head(backend, fields, "chatcmpl-"),
                                             std::move(options), token_bytes_of(backend));
  return plan;
}

}  // namespace

void handle_chat_completions(const Backend& backend, const std::shared_ptr<Exchange>& exchange) {
  generate_from(backend, exchange, ApiDialect::openai, plan_completion);
}

}  // namespace sluice
