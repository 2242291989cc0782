// The only place that knows which HTTP status, and which words in JSON, an error becomes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "api/api_error.h"
#include "base/result.h"
#include "server/http_message.h"

namespace sluice {

// OpenAI: {"error":{"message","type","param","code"}}.
// Anthropic: {"type":"error","error":{"type","message"},"request_id"}.
std::string error_json(ApiDialect dialect, const ApiError& error, const std::string& request_id);

// Status, body and the headers that tell SDKs whether to try again.
HttpResponse error_response(ApiDialect dialect, const ApiError& error,
                            const std::string& request_id);

// In the shape of the OpenAI API.
HttpResponse openai_error_response(const ApiError& error);

// For errors of the layers below. What went wrong inside is logged, not told.
// Of rendering and encoding a prompt; `param` names the field it came from. A prompt beyond the
// limits of the text side is too long for good: repeating it cannot help.
ApiError prompt_error(const Error& error, std::string param);
// Of Engine::submit(): a full queue is worth another try.
ApiError submit_error(const Error& error);

// Of Engine::save_cache() and load_cache(), for operators: told as it is, about the field "name".
HttpResponse cache_file_error_response(const Error& error);

// Of an answer that broke off. A constraint of the request that cannot be kept would fail again.
ApiError generation_error(const std::optional<Error>& error);

// The text is an interface: agents match it to shorten their conversation. completion_tokens is
// what the request asked for.
struct ContextOverflow {
  std::int64_t context_tokens_max = 0;
  std::int64_t prompt_tokens = 0;
  std::int64_t completion_tokens = 0;
};
ApiError context_overflow_error(ApiDialect dialect, const ContextOverflow& overflow,
                                std::string param);

}  // namespace sluice
