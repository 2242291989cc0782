// What a client is told when its request cannot be served.
//
// Finer than base/result.h on purpose: clients branch on the kind (a compacting agent looks for
// context_length_exceeded, a retrying SDK for queue_full). Only server/error_map knows which HTTP
// status and which JSON shape a kind becomes.
#pragma once

#include <expected>
#include <string>
#include <utility>

namespace sluice {

enum class ApiErrorKind {
  // The request itself is wrong; repeating it cannot help.
  invalid_json,
  invalid_type,
  missing_parameter,
  invalid_value,
  unsupported_parameter,
  unsupported_content,
  invalid_image,
  image_too_large,
  media_url_not_allowed,
  unsupported_tool,
  invalid_json_schema,  // or another grammar that cannot be compiled
  context_length_exceeded,
  previous_response_not_found,
  thread_not_found,
  // Where it was sent, and by whom.
  unauthorized,
  forbidden,
  not_found,
  model_not_found,
  method_not_allowed,
  unsupported_endpoint,
  upgrade_required,
  unsupported_media_type,
  request_too_large,
  headers_too_large,
  bad_http,
  request_timeout,
  pin_budget_exceeded,
  // The state of the server.
  queue_full,
  not_ready,
  deadline_exceeded,
  internal,
};

// Whose shapes a client expects, for errors too.
enum class ApiDialect { openai, anthropic };

struct ApiError {
  ApiErrorKind kind = ApiErrorKind::internal;
  std::string message;  // names the value seen and the limit
  std::string param;    // JSON path such as "messages[2].content"; empty when about no field
};

template <typename T>
using ApiResult = std::expected<T, ApiError>;

inline std::unexpected<ApiError> api_fail(ApiErrorKind kind, std::string message,
                                          std::string param = {}) {
  return std::unexpected<ApiError>(ApiError{kind, std::move(message), std::move(param)});
}

}  // namespace sluice
