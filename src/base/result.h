// Result<T>: the one way a function of this project fails.
//
// An Error names what was wrong (field, file or tensor), the value seen and the limit. It carries a
// short code; only server/error_map knows HTTP status, only apps/ knows exit codes. Nothing here
// throws; wrappers of throwing libraries catch and return an Error.
#pragma once

#include <expected>
#include <string>
#include <string_view>
#include <utility>

namespace sluice {

enum class ErrorCode {
  invalid_argument,    // the caller's value is wrong; repeating the call cannot help
  not_found,           // a named file, tensor, model or id does not exist
  resource_exhausted,  // a bounded thing (queue, memory, context) is full
  deadline,            // the caller's time limit passed
  cancelled,           // the caller gave up
  corrupt_data,        // bytes on disk contradict themselves
  io,                  // the operating system refused
  unsupported,         // valid, but not something this build or model can do
  internal,            // our bug, found without losing the process
};

std::string_view to_string(ErrorCode code);

struct Error {
  ErrorCode code = ErrorCode::internal;
  std::string message;  // "tensor X: shape [3, 4], want [4, 4]"
  std::string where;    // JSON path, file or flag the message is about; may be empty
};

template <typename T>
using Result = std::expected<T, Error>;

// Makes the unexpected value of a Result: `return fail(ErrorCode::io, "open model.json: ...")`.
inline std::unexpected<Error> fail(ErrorCode code, std::string message, std::string where = {}) {
  return std::unexpected<Error>(Error{code, std::move(message), std::move(where)});
}

}  // namespace sluice

// Evaluates to the value of a Result, or returns its Error from the enclosing function.
#define SLUICE_TRY(...)                                                              \
  ({                                                                                 \
    auto sluice_try_result = (__VA_ARGS__);                                          \
    if (!sluice_try_result) {                                                        \
      return std::unexpected<::sluice::Error>(std::move(sluice_try_result).error()); \
    }                                                                                \
    std::move(sluice_try_result).value();                                            \
  })
