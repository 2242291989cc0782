// The nucleus against a sort, on weights with many ties and on exactly representable sums.
#include "sampling/nucleus.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>
#include <vector>

namespace sluice {
namespace {

std::vector<TokenId> by_sorting(const std::vector<float>& weights, double wanted) {
  std::vector<TokenId> ids(weights.size());
  std::iota(ids.begin(), ids.end(), 0);
  std::sort(ids.begin(), ids.end(), [&](TokenId a, TokenId b) {
    const float weight_a = weights[static_cast<std::size_t>(a)];
    const float weight_b = weights[static_cast<std::size_t>(b)];
    return weight_a != weight_b ? weight_a > weight_b : a < b;
  });
  double sum = 0.0;
  std::size_t count = 0;
  while (count < ids.size() && sum < wanted && weights[static_cast<std::size_t>(ids[count])] > 0) {
    sum += static_cast<double>(weights[static_cast<std::size_t>(ids[count++])]);
  }
  ids.resize(count);
  std::sort(ids.begin(), ids.end());
  return ids;
}

TEST(Nucleus, EqualsASort) {
  std::mt19937_64 random(1);
  for (int round = 0; round < 2000; ++round) {
    std::vector<float> weights(1 + random() % 400);
    const std::uint64_t values = 1 + random() % 1000;
    for (float& weight : weights) {
      // Multiples of 2^-20 from a wide range: sums in any order are exact.
      weight = std::ldexp(static_cast<float>(random() % values), -static_cast<int>(random() % 20));
    }
    weights[random() % weights.size()] = 1.0F;
    const double total = std::accumulate(weights.begin(), weights.end(), 0.0);
    const double wanted = total * static_cast<double>(1 + random() % 1000) / 1000.0;
    std::vector<TokenId> ids(weights.size());
    ids.resize(nucleus(weights, wanted, ids));
    ASSERT_EQ(ids, by_sorting(weights, wanted)) << "round " << round;
  }
}

TEST(Nucleus, KeepsEverythingPositiveWhenTheSumFallsShort) {
  const std::vector<float> weights{0.5F, 0.0F, 1.0F, 1e-38F};
  std::vector<TokenId> ids(4);
  ids.resize(nucleus(weights, 2.0, ids));
  EXPECT_EQ(ids, (std::vector<TokenId>{0, 2, 3}));
}

TEST(Nucleus, TiesGoToTheLowerIds) {
  const std::vector<float> weights(1000, 1.0F);
  std::vector<TokenId> ids(1000);
  ids.resize(nucleus(weights, 2.5, ids));
  EXPECT_EQ(ids, (std::vector<TokenId>{0, 1, 2}));
}

}  // namespace
}  // namespace sluice
