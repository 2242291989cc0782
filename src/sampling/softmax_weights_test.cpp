// The weights against double, and bit for bit against themselves at every length.
#include "sampling/softmax_weights.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>
#include <vector>

namespace sluice {
namespace {

TEST(SoftmaxWeights, WithinThreeUlpOfDouble) {
  double worst = 0.0;
  for (int i = 0; i <= 2000000; ++i) {
    const float x = -87.0F * static_cast<float>(i) / 2000000.0F;
    const auto got = static_cast<double>(softmax_weight(x, {.best = 0.0F, .temperature = 1.0F}));
    const double want = std::exp(static_cast<double>(x));
    const double ulp = std::ldexp(1.0, std::ilogb(want) - 23);
    worst = std::max(worst, std::abs(got - want) / ulp);
  }
  RecordProperty("worst_ulp", std::to_string(worst));
  EXPECT_LT(worst, 3.0);
}

TEST(SoftmaxWeights, EdgesAreExact) {
  constexpr float kInf = std::numeric_limits<float>::infinity();
  constexpr float kMax = std::numeric_limits<float>::max();
  EXPECT_EQ(softmax_weight(5.0F, {.best = 5.0F, .temperature = 0.3F}), 1.0F);
  EXPECT_EQ(softmax_weight(-kInf, {.best = 5.0F, .temperature = 0.3F}), 0.0F);
  EXPECT_EQ(softmax_weight(-kMax, {.best = kMax, .temperature = 1e-5F}), 0.0F);
  EXPECT_EQ(softmax_weight(-87.001F, {.best = 0.0F, .temperature = 1.0F}), 0.0F);
  EXPECT_GE(softmax_weight(-87.0F, {.best = 0.0F, .temperature = 1.0F}),
            std::numeric_limits<float>::min());
}

TEST(SoftmaxWeights, AWholeRowHasTheBitsOfSingleCalls) {
  std::mt19937 random(1);
  std::normal_distribution<float> normal(0.0F, 30.0F);
  for (std::size_t size = 1; size < 70; ++size) {
    std::vector<float> scores(size);
    for (float& score : scores) {
      score = normal(random);
    }
    const WeightScale scale{.best = 120.0F, .temperature = 0.7F};
    std::vector<float> weights(size);
    softmax_weights(scores, scale, weights);
    for (std::size_t i = 0; i < size; ++i) {
      ASSERT_EQ(weights[i], softmax_weight(scores[i], scale)) << size << " " << i;
    }
  }
}

}  // namespace
}  // namespace sluice
