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

TEST(ShapeTest, PrintsAndCounts) {
  EXPECT_EQ(to_string(Shape{3, 4}), "[3, 4]");
  EXPECT_EQ(to_string(Shape{}), "[]");
  EXPECT_EQ(element_count({3, 4, 5}), 60);
  EXPECT_EQ(element_count({}), 1);
  EXPECT_EQ(element_count({7, 0}), 0);
}

}  // namespace
}  // namespace sluice
