// Private to text/: errors and buffers of the Rust crate's C ABI as C++ values.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "sluice_text.h"

namespace sluice {

inline const std::uint8_t* rust_data(std::string_view text) {
  return reinterpret_cast<const std::uint8_t*>(text.data());
}

// The Error of a failed call; frees `error`.
Error take_rust_error(sluice_text_code code, sluice_text_error* error, std::string where);

// Calls function(args..., &error); the Error when it did not succeed.
template <typename Function, typename... Args>
Result<void> rust_call(std::string where, Function function, Args... args) {
  sluice_text_error* error = nullptr;
  const sluice_text_code code = function(args..., &error);
  if (code != SLUICE_TEXT_OK) {
    return std::unexpected(take_rust_error(code, error, std::move(where)));
  }
  return {};
}

// Copy a buffer that Rust allocated, and free it.
std::string take_rust_bytes(sluice_bytes bytes);
std::vector<std::int32_t> take_rust_ids(sluice_ids ids);
std::vector<std::pair<std::size_t, std::size_t>> take_rust_ranges(sluice_ranges ranges);

}  // namespace sluice
