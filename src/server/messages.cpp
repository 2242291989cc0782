#include "server/messages.h"

#include <utility>

#include "api/anthropic/messages_reply.h"
#include "api/anthropic/messages_request.h"
#include "server/chat_plan.h"
#include "server/plan_exchange.h"

namespace sluice {
namespace {

constexpr const char* kParam = "messages";

// States are kept after whole blocks.
std::int64_t marked_tokens(const Backend& backend, const EncodedChat& encoded) {
  if (encoded.marked_positions.empty() || backend.engine->config().reuse_bytes == 0) {
    return 0;
  }
  return encoded.marked_positions.back() / kKvBlockTokens * kKvBlockTokens;
}

ApiResult<GenerationPlan> plan_messages(const Backend& backend, const HttpRequest& http,
                                        std::string body) {
  if (const auto error = check_admission(backend)) {
    return std::unexpected(*error);
  }
  const auto request =
      parse_messages_request(std::move(body), backend.config->messages, request_limits(backend));
  if (!request) {
    return std::unexpected(request.error());
  }
  const auto encoded = encode_chat(backend, http, request->chat, kParam);
  if (!encoded) {
    return std::unexpected(encoded.error());
  }
  auto plan = plan_chat(backend, http, ApiDialect::anthropic, request->chat, *encoded, kParam);
  if (!plan) {
    return plan;
  }
  const GenerationFields& fields = request->chat.generation;
  const std::int64_t given = plan->sequences.front().request.stop.tokens_max;
  const bool fills_context =
      std::ssize(encoded->token_ids) + given == context_max_of(backend, http);
  plan->format = std::make_unique<MessagesReply>(
      make_reply_head(backend, fields, "msg_"),
      MessagesReplyOptions{.omit_thinking = request->omit_thinking,
                           .length_is_context = fills_context && fields.tokens_max != given,
                           .marked_tokens = marked_tokens(backend, *encoded)});
  return plan;
}

ApiResult<JsonAnswer> count_tokens(const Backend& backend, const HttpRequest& http,
                                   std::string body) {
  const auto request =
      parse_messages_request(std::move(body), backend.config->messages, request_limits(backend));
  if (!request) {
    return std::unexpected(request.error());
  }
  return count_chat_tokens(backend, http, ApiDialect::anthropic, request->chat, kParam);
}

}  // namespace

void handle_messages(const Backend& backend, const std::shared_ptr<Exchange>& exchange) {
  generate_from(backend, exchange, ApiDialect::anthropic, plan_messages);
}

void handle_count_tokens(const Backend& backend, const std::shared_ptr<Exchange>& exchange) {
  reply_json_from(backend, exchange, ApiDialect::anthropic, count_tokens);
}

}  // namespace sluice
