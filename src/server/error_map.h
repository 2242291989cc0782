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

// For errors of the layers below. What went wrong inside is logged, not told.
// Of rendering and encoding a prompt; `param` names the field it came from. A prompt beyond the
// limits of the text side is too long for good: repeating it cannot help.
ApiError prompt_error(const Error& error, std::string param);
// Of Engine::submit(): a full queue is worth another try.
ApiError submit_error(const Error& error);

// The text is an interface: agents match it to shorten their conversation. completion_tokens is
// what the request asked for.
struct ContextOverflow {
  std::int64_t context_tokens_max = 0;
  std::int64_t prompt_tokens = 0;
  std::int64_t completion_tokens = 0;
};
ApiError context_overflow_error(const ContextOverflow& overflow, std::string param);

}  // namespace sluice
