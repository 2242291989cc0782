#include "server/text_utilities.h"

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <utility>

#include "api/fields/json_text.h"
#include "api/openai/openai_reply.h"
#include "api/openai/text_requests.h"
#include "server/chat_plan.h"
#include "server/error_map.h"
#include "server/generation_run.h"

namespace sluice {
namespace {

namespace json = boost::json;

// A reply body and the fields of the request that had no effect.
struct Answer {
  json::object body;
  std::vector<std::string> ignored = {};
};

void reply(const std::shared_ptr<Exchange>& exchange, ApiResult<Answer> answer) {
  if (!answer) {
    exchange->reply(openai_error_response(answer.error()));
    return;
  }
  HttpResponse response{.body = to_json(answer->body)};
  add_ignored(answer->ignored, response);
  exchange->reply(std::move(response));
}

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
    auto encoded =
        encode_chat(backend, *chat, "messages", cache_owner(backend, chat->generation, http));
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

ApiResult<Answer> tokenize(const Backend& backend, const HttpRequest& http, std::string body) {
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
  Answer answer{.body = {{"tokens", std::move(tokens)},
                         {"count", ids->size()},
                         {"max_model_len", backend.engine->config().context_max},
                         {"token_strs", nullptr}},
                .ignored = std::move(request->ignored)};
  if (request->return_token_strs) {
    answer.body["token_strs"] = std::move(strings);
  }
  return answer;
}

ApiResult<Answer> detokenize(const Backend& backend, std::string body) {
  const auto ids = parse_detokenize_request(std::move(body), request_limits(backend));
  if (!ids) {
    return std::unexpected(ids.error());
  }
  const auto text = backend.model->tokenizer.decode(*ids, false);
  if (!text) {
    return std::unexpected(prompt_error(text.error(), "tokens"));
  }
  return Answer{.body = {{"prompt", *text}, {"content", *text}}};
}

ApiResult<Answer> apply_template(const Backend& backend, const HttpRequest& http,
                                 std::string body) {
  auto request =
      parse_template_request(std::move(body), backend.config->chat, request_limits(backend));
  if (!request) {
    return std::unexpected(request.error());
  }
  const auto encoded = encode_chat(backend, request->chat, "messages",
                                   cache_owner(backend, request->chat.generation, http));
  if (!encoded) {
    return std::unexpected(encoded.error());
  }
  Answer answer{.body = {{"prompt", encoded->text}, {"reasoning_open", encoded->reasoning_open}},
                .ignored = std::move(request->chat.ignored)};
  if (request->return_tokens) {
    answer.body["tokens"] = token_ids_json(encoded->token_ids);
  }
  return answer;
}

ApiResult<Answer> chat_input_tokens(const Backend& backend, const HttpRequest& http,
                                    std::string body) {
  auto request = parse_chat_request(std::move(body), backend.config->chat, request_limits(backend));
  if (!request) {
    return std::unexpected(request.error());
  }
  if (const auto error = check_model(backend, request->generation)) {
    return std::unexpected(*error);
  }
  const auto encoded =
      encode_chat(backend, *request, "messages", cache_owner(backend, request->generation, http));
  if (!encoded) {
    return std::unexpected(encoded.error());
  }
  return Answer{
      .body = {{"object", "response.input_tokens"}, {"input_tokens", encoded->token_ids.size()}},
      .ignored = std::move(request->ignored)};
}

}  // namespace

void handle_tokenize(const Backend& backend, const std::shared_ptr<Exchange>& exchange) {
  reply(exchange, tokenize(backend, exchange->request(), exchange->take_body()));
}

void handle_detokenize(const Backend& backend, const std::shared_ptr<Exchange>& exchange) {
  reply(exchange, detokenize(backend, exchange->take_body()));
}

void handle_apply_template(const Backend& backend, const std::shared_ptr<Exchange>& exchange) {
  reply(exchange, apply_template(backend, exchange->request(), exchange->take_body()));
}

void handle_chat_input_tokens(const Backend& backend, const std::shared_ptr<Exchange>& exchange) {
  reply(exchange, chat_input_tokens(backend, exchange->request(), exchange->take_body()));
}

}  // namespace sluice
