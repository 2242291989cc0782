// See error_map.h. Whatever a client could repeat with the same result is 4xx: SDKs repeat 408,
// 409, 429 and 5xx by themselves.
#include "server/error_map.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>
#include <utility>

#include "api/fields/json_text.h"

namespace sluice {
namespace {

struct ErrorClass {
  int status;
  std::string_view type;
  std::string_view code;  // empty: null
  bool retry;
};

constexpr std::string_view kInvalidRequest = "invalid_request_error";

ErrorClass class_of(ApiErrorKind kind) {
  switch (kind) {
    case ApiErrorKind::invalid_json:
      return {400, kInvalidRequest, "invalid_json", false};
    case ApiErrorKind::invalid_type:
      return {400, kInvalidRequest, "invalid_type", false};
    case ApiErrorKind::missing_parameter:
      return {400, kInvalidRequest, "missing_required_parameter", false};
    case ApiErrorKind::invalid_value:
      return {400, kInvalidRequest, "invalid_value", false};
    case ApiErrorKind::unsupported_parameter:
      return {400, kInvalidRequest, "unsupported_parameter", false};
    case ApiErrorKind::unsupported_content:
      return {400, kInvalidRequest, "unsupported_content", false};
    case ApiErrorKind::invalid_image:
      return {400, kInvalidRequest, "invalid_image", false};
    case ApiErrorKind::image_too_large:
      return {400, kInvalidRequest, "image_too_large", false};
    case ApiErrorKind::media_url_not_allowed:
      return {400, kInvalidRequest, "media_url_not_allowed", false};
    case ApiErrorKind::unsupported_tool:
      return {400, kInvalidRequest, "unsupported_tool", false};
    case ApiErrorKind::invalid_json_schema:
      return {400, kInvalidRequest, "invalid_json_schema", false};
    case ApiErrorKind::context_length_exceeded:
      return {400, kInvalidRequest, "context_length_exceeded", false};
    case ApiErrorKind::previous_response_not_found:
      return {400, kInvalidRequest, "previous_response_not_found", false};
    case ApiErrorKind::thread_not_found:
      return {404, kInvalidRequest, "thread_not_found", false};
    case ApiErrorKind::bad_http:
      return {400, kInvalidRequest, "bad_http", false};
    case ApiErrorKind::unsupported_endpoint:
      return {400, kInvalidRequest, "unsupported_endpoint", false};
    case ApiErrorKind::unauthorized:
      return {401, kInvalidRequest, "invalid_api_key", false};
    case ApiErrorKind::forbidden:
      return {403, "permission_error", "", false};
    case ApiErrorKind::not_found:
      return {404, kInvalidRequest, "not_found", false};
    case ApiErrorKind::model_not_found:
      return {404, kInvalidRequest, "model_not_found", false};
    case ApiErrorKind::method_not_allowed:
      return {405, kInvalidRequest, "method_not_allowed", false};
    case ApiErrorKind::request_timeout:
      return {408, kInvalidRequest, "request_timeout", false};
    case ApiErrorKind::pin_budget_exceeded:
      return {409, kInvalidRequest, "pin_budget_exceeded", false};
    case ApiErrorKind::request_too_large:
      return {413, kInvalidRequest, "request_too_large", false};
    case ApiErrorKind::unsupported_media_type:
      return {415, kInvalidRequest, "unsupported_media_type", false};
    case ApiErrorKind::upgrade_required:
      return {426, kInvalidRequest, "upgrade_required", false};
    case ApiErrorKind::headers_too_large:
      return {431, kInvalidRequest, "headers_too_large", false};
    case ApiErrorKind::queue_full:
      return {429, "rate_limit_error", "queue_full", true};
    case ApiErrorKind::not_ready:
      return {503, "server_error", "not_ready", true};
    case ApiErrorKind::deadline_exceeded:
      return {504, "timeout_error", "deadline_exceeded", false};
    case ApiErrorKind::internal:
      break;
  }
  return {500, "server_error", "internal_error", false};
}

// What can be wrong with a file that an operator named.
ErrorClass class_of_cache_file(ErrorCode code) {
  switch (code) {
    case ErrorCode::not_found:
      return class_of(ApiErrorKind::not_found);
    case ErrorCode::invalid_argument:
      return class_of(ApiErrorKind::invalid_value);
    case ErrorCode::unsupported:
      return {409, kInvalidRequest, "cache_file_mismatch", false};
    case ErrorCode::corrupt_data:
      return {409, kInvalidRequest, "cache_file_damaged", false};
    default:
      return {500, "server_error", "cache_file_io", false};
  }
}

// The words of the Anthropic API follow from the status.
std::string_view anthropic_type(int status) {
  switch (status) {
    case 401:
      return "authentication_error";
    case 403:
      return "permission_error";
    case 404:
      return "not_found_error";
    case 413:
      return "request_too_large";
    case 429:
      return "rate_limit_error";
    case 503:
      return "overloaded_error";
    case 504:
      return "timeout_error";
    default:
      return status < 500 ? kInvalidRequest : "api_error";
  }
}

boost::json::value text_or_null(std::string_view text) {
  return text.empty() ? boost::json::value(nullptr)
                      : boost::json::value(boost::json::string(text.data(), text.size()));
}

// Messages and paths repeat what the client sent, perhaps cut inside a character.
std::string openai_error_json(const ErrorClass& known, const ApiError& error) {
  return boost::json::serialize(boost::json::object{
      {"error", boost::json::object{{"message", replace_invalid_utf8(error.message)},
                                    {"type", text_or_null(known.type)},
                                    {"param", text_or_null(replace_invalid_utf8(error.param))},
                                    {"code", text_or_null(known.code)}}}});
}

// `exhausted`: what running into a limit means here.
ApiError map_error(const Error& error, std::string param, ApiErrorKind exhausted) {
  switch (error.code) {
    case ErrorCode::invalid_argument:
      return {ApiErrorKind::invalid_value, error.message, std::move(param)};
    case ErrorCode::unsupported:
      return {ApiErrorKind::unsupported_parameter, error.message, std::move(param)};
    case ErrorCode::resource_exhausted:
      return {exhausted, error.message, std::move(param)};
    case ErrorCode::deadline:
      return {ApiErrorKind::deadline_exceeded, error.message, ""};
    case ErrorCode::cancelled:  // not ready yet, or no more
      return {ApiErrorKind::not_ready, error.message, ""};
    case ErrorCode::not_found:
    case ErrorCode::corrupt_data:
    case ErrorCode::io:
    case ErrorCode::internal:
      break;
  }
  spdlog::error("internal error: {}", error.message);
  return {ApiErrorKind::internal, "internal error", ""};
}

}  // namespace

std::string error_json(ApiDialect dialect, const ApiError& error, const std::string& request_id) {
  const ErrorClass known = class_of(error.kind);
  if (dialect == ApiDialect::anthropic) {
    boost::json::object inner{{"type", text_or_null(anthropic_type(known.status))},
                              {"message", replace_invalid_utf8(error.message)}};
    if (error.kind == ApiErrorKind::thread_not_found) {  // clients act on this one
      inner["details"] = boost::json::object{{"error_code", text_or_null(known.code)}};
    }
    return boost::json::serialize(boost::json::object{
        {"type", "error"}, {"error", std::move(inner)}, {"request_id", request_id}});
  }
  return openai_error_json(known, error);
}

HttpResponse error_response(ApiDialect dialect, const ApiError& error,
                            const std::string& request_id) {
  const ErrorClass known = class_of(error.kind);
  constexpr int kOverloaded = 529;  // what the Anthropic API says instead of 503
  const bool overloaded = dialect == ApiDialect::anthropic && known.status == 503;
  HttpResponse response{.status = overloaded ? kOverloaded : known.status,
                        .body = error_json(dialect, error, request_id)};
  response.headers.emplace_back("x-should-retry", known.retry ? "true" : "false");
  if (known.retry) {
    response.headers.emplace_back("retry-after", "1");
  }
  if (known.status == 401) {
    response.headers.emplace_back("WWW-Authenticate", "Bearer");
  }
  if (known.status == 426) {
    response.headers.emplace_back("Upgrade", "HTTP/1.1");
  }
  return response;
}

HttpResponse openai_error_response(const ApiError& error) {
  return error_response(ApiDialect::openai, error, "");
}

ApiError prompt_error(const Error& error, std::string param) {
  ApiError mapped = map_error(error, std::move(param), ApiErrorKind::context_length_exceeded);
  if (mapped.kind == ApiErrorKind::context_length_exceeded) {
    // Agents shorten a conversation when they read these words.
    mapped.message = "prompt is too long: " + mapped.message;
  }
  return mapped;
}

ApiError submit_error(const Error& error) {
  return map_error(error, error.where, ApiErrorKind::queue_full);
}

HttpResponse cache_file_error_response(const Error& error) {
  const ErrorClass known = class_of_cache_file(error.code);
  HttpResponse response{
      .status = known.status,
      .body = openai_error_json(known, {.message = error.message, .param = "name"})};
  response.headers.emplace_back("x-should-retry", "false");
  return response;
}

ApiError generation_error(const std::optional<Error>& error) {
  if (error && (error->code == ErrorCode::invalid_argument ||
                error->code == ErrorCode::resource_exhausted)) {
    return {ApiErrorKind::invalid_value,
            "the answer cannot go on as the request constrains it: " + error->message, ""};
  }
  if (error && error->code == ErrorCode::deadline) {
    return {ApiErrorKind::deadline_exceeded, error->message, ""};
  }
  return {ApiErrorKind::internal, "internal error", ""};
}

ApiError context_overflow_error(ApiDialect dialect, const ContextOverflow& overflow,
                                std::string param) {
  if (dialect == ApiDialect::anthropic) {
    return {ApiErrorKind::context_length_exceeded,
            fmt::format("prompt is too long: {} tokens > {} maximum", overflow.prompt_tokens,
                        overflow.context_tokens_max),
            std::move(param)};
  }
  return {
      ApiErrorKind::context_length_exceeded,
      fmt::format("This model's maximum context length is {} tokens. However, you requested "
                  "{} tokens ({} in the messages, {} in the completion). Please reduce the "
                  "length of the messages or completion.",
                  overflow.context_tokens_max, overflow.prompt_tokens + overflow.completion_tokens,
                  overflow.prompt_tokens, overflow.completion_tokens),
      std::move(param)};
}

}  // namespace sluice
