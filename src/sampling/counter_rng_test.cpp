// Known answers of Philox4x32-10 (the kat_vectors of the authors' Random123 library) and the shape
// of uniform_at.
#include "sampling/counter_rng.h"

#include <gtest/gtest.h>

#include <set>

namespace sluice {
namespace {

using Words = std::array<std::uint32_t, 4>;

TEST(CounterRng, KnownAnswers) {
  EXPECT_EQ(philox4x32({0, 0, 0, 0}, {0, 0}),
            (Words{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(philox4x32({0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff}, {0xffffffff, 0xffffffff}),
            (Words{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(philox4x32({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
            (Words{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(CounterRng, UniformUsesTheTopBitsOfTheFirstTwoWords) {
  // 0x6627e8d5e169c58d >> 11, over 2^53.
  EXPECT_EQ(uniform_at(0, 0),
            static_cast<double>(0x6627e8d5e169c58dULL >> 11) / 9007199254740992.0);
}

TEST(CounterRng, EveryBitOfSeedAndPositionMatters) {
  std::set<double> seen{uniform_at(0, 0)};
  for (int bit = 0; bit < 64; ++bit) {
    EXPECT_TRUE(seen.insert(uniform_at(std::uint64_t{1} << bit, 0)).second) << bit;
    EXPECT_TRUE(
        seen.insert(uniform_at(0, static_cast<std::int64_t>(std::uint64_t{1} << bit))).second)
        << bit;
  }
}

TEST(CounterRng, UniformFillsTheUnitInterval) {
  constexpr int kDraws = 100000;
  constexpr int kBins = 20;
  constexpr double kExpected = static_cast<double>(kDraws) / kBins;
  std::array<int, kBins> bins{};
  for (int position = 0; position < kDraws; ++position) {
    const double u = uniform_at(7, position);
    ASSERT_GE(u, 0.0);
    ASSERT_LT(u, 1.0);
    ++bins[static_cast<std::size_t>(u * kBins)];
  }
  double chi_square = 0.0;
  for (const int count : bins) {
    const double difference = count - kExpected;
    chi_square += difference * difference / kExpected;
  }
  EXPECT_LT(chi_square, 43.8);  // 19 degrees of freedom, p = 0.001
}

}  // namespace
}  // namespace sluice
