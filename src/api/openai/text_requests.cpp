#include "api/openai/text_requests.h"

#include <utility>

namespace sluice {
namespace {

TokenizeRequest read_tokenize(JsonFields& body, const ChatDefaults& defaults,
                              const RequestLimits& limits) {
  TokenizeRequest request;
  body.boolean("add_special_tokens");  // these tokenizers add none
  request.parse_special = body.boolean("parse_special").value_or(true);
  request.with_pieces = body.boolean("with_pieces").value_or(false);
  request.return_token_strs = body.boolean("return_token_strs").value_or(false);
  const auto prompt = body.string("prompt");
  const auto content = body.string("content");
  if (body.has("messages")) {
    request.input = read_chat_request(body, defaults, limits);
  } else if (prompt || content) {
    request.input = prompt ? *prompt : *content;
  } else {
    body.report().fail(ApiErrorKind::missing_parameter, "prompt, content or messages is required",
                       "prompt");
  }
  return request;
}

}  // namespace

ApiResult<TokenizeRequest> parse_tokenize_request(std::string body_text,
                                                  const ChatDefaults& defaults,
                                                  const RequestLimits& limits) {
  TokenizeRequest request;
  auto ignored = read_body(std::move(body_text), [&](JsonFields& body) {
    request = read_tokenize(body, defaults, limits);
  });
  if (!ignored) {
    return std::unexpected(std::move(ignored).error());
  }
  request.ignored = std::move(*ignored);
  return request;
}

ApiResult<DetokenizeRequest> parse_detokenize_request(std::string body_text,
                                                      const RequestLimits& limits) {
  DetokenizeRequest request;
  auto ignored = read_body(std::move(body_text), [&](JsonFields& body) {
    if (const boost::json::array* tokens = body.array("tokens")) {
      request.token_ids = read_token_ids(*tokens, "tokens", limits, body.report());
    } else {
      body.report().fail(ApiErrorKind::missing_parameter, "tokens is required", "tokens");
    }
  });
  if (!ignored) {
    return std::unexpected(std::move(ignored).error());
  }
  request.ignored = std::move(*ignored);
  return request;
}

ApiResult<TemplateRequest> parse_template_request(std::string body_text,
                                                  const ChatDefaults& defaults,
                                                  const RequestLimits& limits) {
  TemplateRequest request;
  auto ignored = read_body(std::move(body_text), [&](JsonFields& body) {
    request.chat = read_chat_request(body, defaults, limits);
    request.return_tokens = body.boolean("return_tokens").value_or(false);
  });
  if (!ignored) {
    return std::unexpected(std::move(ignored).error());
  }
  request.chat.ignored = std::move(*ignored);
  return request;
}

}  // namespace sluice
