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

}  // namespace sluice
