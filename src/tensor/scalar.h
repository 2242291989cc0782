// 16- and 8-bit floating-point scalars as bit patterns, and their exact conversions.
// Rounding is to nearest, ties to even. Integer arithmetic only, so that the result does not depend
// on the floating-point mode of the thread (FTZ, DAZ) or on the instruction set.
#pragma once

#include <bit>
#include <cstdint>

namespace sluice {

// A bfloat16 bit pattern: the upper half of a binary32.
using bf16_t = std::uint16_t;

constexpr float bf16_to_float(bf16_t x) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(x) << 16);
}

constexpr bf16_t float_to_bf16(float x) {
  const auto bits = std::bit_cast<std::uint32_t>(x);
  if ((bits & 0x7fffffffU) > 0x7f800000U) {
    return static_cast<bf16_t>((bits >> 16) | 0x40U);  // quiet NaN
  }
  return static_cast<bf16_t>((bits + 0x7fffU + ((bits >> 16) & 1U)) >> 16);
}

// IEEE binary16 to binary32 (exact).
constexpr float f16_to_float(std::uint16_t x) {
  const std::uint32_t sign = static_cast<std::uint32_t>(x & 0x8000U) << 16;
  std::uint32_t exponent = (x >> 10) & 0x1fU;
  std::uint32_t mantissa = x & 0x3ffU;
  if (exponent == 31) {
    return std::bit_cast<float>(sign | 0x7f800000U | (mantissa << 13));
  }
  if (exponent == 0) {
    if (mantissa == 0) {
      return std::bit_cast<float>(sign);
    }
    exponent = 1;
    while ((mantissa & 0x400U) == 0) {  // at most ten steps: normalise a subnormal
      mantissa <<= 1;
      --exponent;
    }
    mantissa &= 0x3ffU;
  }
  return std::bit_cast<float>(sign | ((exponent + 112) << 23) | (mantissa << 13));
}

// OCP FP8 E4M3 ("fn": no infinities, 0x7f and 0xff are NaN, largest value 448) to binary32 (exact).
constexpr float f8_e4m3_to_float(std::uint8_t x) {
  const std::uint32_t sign = static_cast<std::uint32_t>(x & 0x80U) << 24;
  std::uint32_t exponent = (x >> 3) & 0xfU;
  std::uint32_t mantissa = x & 7U;
  if (exponent == 15 && mantissa == 7) {
    return std::bit_cast<float>(sign | 0x7fc00000U);
  }
  if (exponent == 0) {
    if (mantissa == 0) {
      return std::bit_cast<float>(sign);
    }
    exponent = 1;
    while ((mantissa & 8U) == 0) {
      mantissa <<= 1;
      --exponent;
    }
    mantissa &= 7U;
  }
  return std::bit_cast<float>(sign | ((exponent + 120) << 23) | (mantissa << 20));
}

// The values of all codes: a look-up is faster than the function.
struct F8E4m3Values {
  float of[256];
};
inline constexpr F8E4m3Values kF8E4m3Values = [] {
  F8E4m3Values values{};
  for (unsigned code = 0; code < 256; ++code) {
    values.of[code] = f8_e4m3_to_float(static_cast<std::uint8_t>(code));
  }
  return values;
}();

inline constexpr float kF8E4m3Max = 448.0F;

// Larger magnitudes, infinities among them, become +-448; only NaN becomes a NaN code.
constexpr std::uint8_t float_to_f8_e4m3(float x) {
  const auto bits = std::bit_cast<std::uint32_t>(x);
  const std::uint32_t sign = bits >> 24 & 0x80U;
  const std::uint32_t magnitude = bits & 0x7fffffffU;
  std::uint32_t code = 0x7e;
  if (magnitude > 0x7f800000U) {
    code = 0x7f;
  } else if (magnitude >= 0x3c800000U) {  // 2^-6, the smallest normal value
    const std::uint32_t rounded = (magnitude + 0x7ffffU + (magnitude >> 20 & 1U)) >> 20;
    code = rounded - (120U << 3) < code ? rounded - (120U << 3) : code;
  } else {  // a multiple of 2^-9
    const std::uint32_t significand = (magnitude & 0x7fffffU) | 0x800000U;
    const std::uint32_t shift = 141U - (magnitude >> 23);
    code = shift > 24
               ? 0
               : (significand + (1U << (shift - 1)) - 1 + (significand >> shift & 1U)) >> shift;
  }
  return static_cast<std::uint8_t>(sign | code);
}

}  // namespace sluice
