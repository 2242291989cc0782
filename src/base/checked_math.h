// Integer arithmetic on sizes that come from files and users: overflow is a value, not a wrap.
#pragma once

#include <concepts>
#include <optional>

namespace sluice {

template <std::integral T>
constexpr std::optional<T> checked_mul(T a, T b) {
  T result{};
  return __builtin_mul_overflow(a, b, &result) ? std::nullopt : std::optional<T>(result);
}

template <std::integral T>
constexpr std::optional<T> checked_add(T a, T b) {
  T result{};
  return __builtin_add_overflow(a, b, &result) ? std::nullopt : std::optional<T>(result);
}

// Smallest multiple of `multiple` that is >= value. value >= 0, multiple > 0.
template <std::integral T>
constexpr T round_up(T value, T multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

template <std::integral T>
constexpr T ceil_div(T value, T divisor) {
  return (value + divisor - 1) / divisor;
}

}  // namespace sluice
