#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>

#include "tensor/dtype.h"
#include "tensor/scalar.h"
#include "tensor/tensor_view.h"

namespace sluice {
namespace {

TEST(DTypeTest, NamesRoundTrip) {
  for (const DType dtype :
       {DType::f64, DType::f32, DType::f16, DType::bf16, DType::f8_e4m3, DType::i64, DType::i32,
        DType::i16, DType::i8, DType::u8, DType::boolean}) {
    EXPECT_EQ(dtype_from_name(dtype_name(dtype)), dtype);
  }
  EXPECT_EQ(dtype_bytes(DType::bf16), 2U);
  EXPECT_EQ(dtype_bytes(DType::f64), 8U);
  EXPECT_EQ(dtype_from_name("F4"), std::nullopt);
}

TEST(ScalarTest, Bf16RoundsToNearestEven) {
  EXPECT_EQ(float_to_bf16(1.0F), 0x3f80);
  EXPECT_EQ(float_to_bf16(std::bit_cast<float>(0x3f808000U)), 0x3f80);  // tie, even below
  EXPECT_EQ(float_to_bf16(std::bit_cast<float>(0x3f818000U)), 0x3f82);  // tie, even above
  EXPECT_EQ(float_to_bf16(std::bit_cast<float>(0x3f808001U)), 0x3f81);
  EXPECT_EQ(float_to_bf16(std::numeric_limits<float>::max()), 0x7f80);  // rounds to infinity
  EXPECT_EQ(float_to_bf16(-0.0F), 0x8000);
  EXPECT_TRUE(std::isnan(bf16_to_float(float_to_bf16(std::bit_cast<float>(0x7f800001U)))));
}

TEST(ScalarTest, EveryBf16RoundTrips) {
  for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
    const auto value = static_cast<bf16_t>(bits);
    if (!std::isnan(bf16_to_float(value))) {
      EXPECT_EQ(float_to_bf16(bf16_to_float(value)), value);
    }
  }
}

TEST(ScalarTest, EveryF16HasItsValue) {
  for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
    const int exponent = static_cast<int>(bits >> 10) & 31;
    const double mantissa = bits & 1023U;
    const double sign = (bits & 0x8000U) != 0 ? -1.0 : 1.0;
    const float got = f16_to_float(static_cast<std::uint16_t>(bits));
    if (exponent == 31) {
      EXPECT_EQ(std::isinf(got), mantissa == 0.0);
      EXPECT_EQ(std::isnan(got), mantissa != 0.0);
      continue;
    }
    const double expected =
        exponent == 0 ? std::ldexp(mantissa, -24) : std::ldexp(1024.0 + mantissa, exponent - 25);
    EXPECT_EQ(static_cast<double>(got), sign * expected) << bits;
  }
}

TEST(ScalarTest, EveryF8HasItsValue) {
  for (std::uint32_t bits = 0; bits < 0x100; ++bits) {
    const int exponent = static_cast<int>(bits >> 3) & 15;
    const double mantissa = bits & 7U;
    const double sign = (bits & 0x80U) != 0 ? -1.0 : 1.0;
    const float got = f8_e4m3_to_float(static_cast<std::uint8_t>(bits));
    if (exponent == 15 && mantissa == 7.0) {
      EXPECT_TRUE(std::isnan(got));
      continue;
    }
    const double expected =
        exponent == 0 ? std::ldexp(mantissa, -9) : std::ldexp(8.0 + mantissa, exponent - 10);
    EXPECT_EQ(static_cast<double>(got), sign * expected) << bits;
  }
  EXPECT_EQ(f8_e4m3_to_float(0x7e), 448.0F);
}

// Every code is what its value rounds to; between neighbours the nearer one, at the middle the
// even.
TEST(ScalarTest, F8RoundsToNearestEven) {
  for (std::uint32_t code = 0; code < 0x7e; ++code) {
    const float value = kF8E4m3Values.of[code];
    const float next = kF8E4m3Values.of[code + 1];
    const float middle = (value + next) / 2;  // exact
    const std::uint32_t even = code + code % 2;
    for (const std::uint32_t sign : {0x00U, 0x80U}) {
      const auto rounded = [&](float x) {
        return std::uint32_t{float_to_f8_e4m3(sign == 0 ? x : -x)};
      };
      EXPECT_EQ(rounded(value), sign | code);
      EXPECT_EQ(rounded(middle), sign | even);
      EXPECT_EQ(rounded(std::nextafter(middle, 0.0F)), sign | code);
      EXPECT_EQ(rounded(std::nextafter(middle, next)), sign | (code + 1));
    }
  }
}

TEST(ScalarTest, F8SaturatesAndKeepsNan) {
  const float infinity = std::numeric_limits<float>::infinity();
  for (const float x : {448.0F, 448.1F, 464.0F, 480.0F, 1e38F, infinity}) {
    EXPECT_EQ(float_to_f8_e4m3(x), 0x7e) << x;
    EXPECT_EQ(float_to_f8_e4m3(-x), 0xfe) << x;
  }
  for (const float x : {0.0F, 0x1p-149F, 0x1p-126F, 0x1p-40F, 0x1p-10F}) {
    EXPECT_EQ(float_to_f8_e4m3(x), 0x00) << x;
    EXPECT_EQ(float_to_f8_e4m3(-x), 0x80) << x;
  }
  EXPECT_EQ(float_to_f8_e4m3(std::numeric_limits<float>::quiet_NaN()) & 0x7f, 0x7f);
}

TEST(ShapeTest, PrintsAndCounts) {
  EXPECT_EQ(to_string(Shape{3, 4}), "[3, 4]");
  EXPECT_EQ(to_string(Shape{}), "[]");
  EXPECT_EQ(element_count({3, 4, 5}), 60);
  EXPECT_EQ(element_count({}), 1);
  EXPECT_EQ(element_count({7, 0}), 0);
}

}  // namespace
}  // namespace sluice
