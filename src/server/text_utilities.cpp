#include "server/text_utilities.h"

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <utility>

#include "api/fields/json_text.h"
#include "api/openai/openai_reply.h"
#include "api/openai/text_requests.h"
#include "server/chat_plan.h"
#include "server/error_map.h"
#include "server/json_answer.h"
#include "server/plan_exchange.h"

namespace sluice {
namespace {

namespace json = boost::json;

// The bytes of a token as text if they are text, as numbers otherwise.
json::value piece_json(std::string_view bytes) {
  const std::string text = replace_invalid_utf8(bytes);
  if (text == bytes) {
    return json::string(text);
  }
  json::array numbers;
  for (const char byte : bytes) {
    numbers.push_back(static_cast<unsigned char>(byte));
  }
  return numbers;
}

ApiResult<std::vector<TokenId>> tokens_of(const Backend& backend, const HttpRequest& http,
                                          const TokenizeRequest& request) {
  if (const auto* chat = std::get_if<ChatRequest>(&request.input)) {
    auto encoded = encode_chat(backend, http, *chat, "messages");
    if (!encoded) {
      return std::unexpected(encoded.error());
    }
    return std::move(encoded->token_ids);
  }
  auto ids = backend.model->tokenizer.encode(
      std::get<std::string>(request.input),
      request.parse_special ? ControlTokens::parse : ControlTokens::literal);
  if (!ids) {
    return std::unexpected(prompt_error(ids.error(), "prompt"));
  }
  return std::move(*ids);
}

ApiResult<JsonAnswer> tokenize(const Backend& backend, const HttpRequest& http, std::string body) {
  auto request =
      parse_tokenize_request(std::move(body), backend.config->chat, request_limits(backend));
  if (!request) {
    return std::unexpected(request.error());
  }
  const auto ids = tokens_of(backend, http, *request);
  if (!ids) {
    return std::unexpected(ids.error());
  }
  json::array tokens;
  json::array strings;
  for (const TokenId id : *ids) {
    const std::string_view bytes = backend.model->tokenizer.token_bytes(id);
    if (request->with_pieces) {
      tokens.push_back(json::object{{"id", id}, {"piece", piece_json(bytes)}});
    } else {
      tokens.push_back(id);
    }
    if (request->return_token_strs) {
      strings.push_back(json::string(replace_invalid_utf8(bytes)));
    }
  }
  JsonAnswer answer{.body = {{"tokens", std::move(tokens)},
                             {"count", ids->size()},
                             {"max_model_len", backend.engine->config().context_max},
                             {"token_strs", nullptr}},
                    .ignored = std::move(request->ignored)};
  if (request->return_token_strs) {
    answer.body["token_strs"] = std::move(strings);
  }
  return answer;
}

ApiResult<JsonAnswer> detokenize(const Backend& backend, std::string body) {
  auto request = parse_detokenize_request(std::move(body), request_limits(backend));
  if (!request) {
    return std::unexpected(request.error());
  }
  const auto text = backend.model->tokenizer.decode(request->token_ids, false);
  if (!text) {
    return std::unexpected(prompt_error(text.error(), "tokens"));
  }
  return JsonAnswer{.body = {{"prompt", *text}, {"content", *text}},
                    .ignored = std::move(request->ignored)};
}

ApiResult<JsonAnswer> apply_template(const Backend& backend, const HttpRequest& http,
                                     std::string body) {
  auto request =
      parse_template_request(std::move(body), backend.config->chat, request_limits(backend));
  if (!request) {
    return std::unexpected(request.error());
  }
  const auto encoded = encode_chat(backend, http, request->chat, "messages");
  if (!encoded) {
    return std::unexpected(encoded.error());
  }
  JsonAnswer answer{
      .body = {{"prompt", encoded->text}, {"reasoning_open", encoded->reasoning_open}},
      .ignored = std::move(request->chat.ignored)};
  if (request->return_tokens) {
    answer.body["tokens"] = token_ids_json(encoded->token_ids);
  }
  return answer;
}

ApiResult<JsonAnswer> chat_input_tokens(const Backend& backend, const HttpRequest& http,
                                        std::string body) {
  const auto request =
      parse_chat_request(std::move(body), backend.config->chat, request_limits(backend));
  if (!request) {
    return std::unexpected(request.error());
  }
  return count_chat_tokens(backend, http, ApiDialect::openai, *request, "messages");
}

}  // namespace

void handle_tokenize(const Backend& backend, const std::shared_ptr<Exchange>& exchange) {
  reply_json_from(backend, exchange, ApiDialect::openai, tokenize);
}

void handle_detokenize(const Backend& backend, const std::shared_ptr<Exchange>& exchange) {
  reply_json(exchange, detokenize(backend, exchange->take_body()));
}

void handle_apply_template(const Backend& backend, const std::shared_ptr<Exchange>& exchange) {
  reply_json_from(backend, exchange, ApiDialect::openai, apply_template);
}

void handle_chat_input_tokens(const Backend& backend, const std::shared_ptr<Exchange>& exchange) {
  reply_json_from(backend, exchange, ApiDialect::openai, chat_input_tokens);
}

}  // namespace sluice
