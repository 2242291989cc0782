// The only place that knows which HTTP status, and which words in JSON, an error becomes.
#pragma once

#include <cstdint>
#include <string>

#include "api/api_error.h"
#include "base/result.h"
#include "server/http_message.h"

namespace sluice {

// {"error":{"message","type","param","code"}}.
std::string openai_error_json(const ApiError& error);

// Status, body and the headers that tell SDKs whether to try again.
HttpResponse openai_error_response(const ApiError& error);

// For errors of the layers below. `param` names the field a wrong argument came from.
ApiError to_api_error(const Error& error, std::string param);

// The text is an interface: agents match it to shorten their conversation. completion_tokens is
// what the request asked for.
struct ContextOverflow {
  std::int64_t context_tokens_max = 0;
  std::int64_t prompt_tokens = 0;
  std::int64_t completion_tokens = 0;
};
ApiError context_overflow_error(const ContextOverflow& overflow, std::string param);

}  // namespace sluice
