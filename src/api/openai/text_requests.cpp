#include "api/openai/text_requests.h"

#include <utility>

#include "api/fields/json_text.h"

namespace sluice {

ApiResult<TokenizeRequest> parse_tokenize_request(std::string body_text,
                                                  const ChatDefaults& defaults,
                                                  const RequestLimits& limits) {
  const auto object = parse_json_object(std::move(body_text));
  if (!object) {
    return std::unexpected(object.error());
  }
  FieldReport report;
  JsonFields body(*object, "", report);
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
    report.fail(ApiErrorKind::missing_parameter, "prompt, content or messages is required",
                "prompt");
  }
  body.ignore_rest();
  if (report.failed()) {
    return std::unexpected(report.error());
  }
  request.ignored = report.take_ignored();
  return request;
}

ApiResult<std::vector<TokenId>> parse_detokenize_request(std::string body_text,
                                                         const RequestLimits& limits) {
  const auto object = parse_json_object(std::move(body_text));
  if (!object) {
    return std::unexpected(object.error());
  }
  FieldReport report;
  JsonFields body(*object, "", report);
  std::vector<TokenId> ids;
  if (const boost::json::array* tokens = body.array("tokens")) {
    ids = read_token_ids(*tokens, "tokens", limits, report);
  } else {
    report.fail(ApiErrorKind::missing_parameter, "tokens is required", "tokens");
  }
  if (report.failed()) {
    return std::unexpected(report.error());
  }
  return ids;
}

ApiResult<TemplateRequest> parse_template_request(std::string body_text,
                                                  const ChatDefaults& defaults,
                                                  const RequestLimits& limits) {
  const auto object = parse_json_object(std::move(body_text));
  if (!object) {
    return std::unexpected(object.error());
  }
  FieldReport report;
  JsonFields body(*object, "", report);
  TemplateRequest request{.chat = read_chat_request(body, defaults, limits),
                          .return_tokens = body.boolean("return_tokens").value_or(false)};
  body.ignore_rest();
  if (report.failed()) {
    return std::unexpected(report.error());
  }
  request.chat.ignored = report.take_ignored();
  return request;
}

}  // namespace sluice
