#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "base/check.h"
#include "base/checked_math.h"
#include "base/histogram.h"
#include "base/log_sum_exp.h"
#include "base/quantiles.h"
#include "base/result.h"

namespace sluice {
namespace {

Result<int> half(int x) {
  if (x % 2 != 0) {
    return fail(ErrorCode::invalid_argument, std::to_string(x) + " is odd", "x");
  }
  return x / 2;
}

Result<int> quarter(int x) {
  const int once = SLUICE_TRY(half(x));
  return SLUICE_TRY(half(once));
}

Result<void> both_even(int a, int b) {
  SLUICE_TRY(half(a));
  SLUICE_TRY(half(b));
  return {};
}

TEST(ResultTest, TryReturnsTheValueOrTheFirstError) {
  EXPECT_EQ(*quarter(12), 3);
  const Result<int> failed = quarter(6);
  ASSERT_FALSE(failed.has_value());
  EXPECT_EQ(failed.error().code, ErrorCode::invalid_argument);
  EXPECT_EQ(failed.error().message, "3 is odd");
  EXPECT_EQ(failed.error().where, "x");
  EXPECT_TRUE(both_even(2, 4).has_value());
  EXPECT_EQ(both_even(2, 5).error().message, "5 is odd");
}

Result<std::unique_ptr<int>> make_owned(int x) {
  return std::make_unique<int>(x);
}

Result<int> read_owned(int x) {
  const std::unique_ptr<int> owned = SLUICE_TRY(make_owned(x));  // move-only values pass through
  return *owned;
}

TEST(ResultTest, TryMovesMoveOnlyValues) {
  EXPECT_EQ(*read_owned(5), 5);
}

TEST(ResultTest, EveryCodeHasAName) {
  for (const ErrorCode code :
       {ErrorCode::invalid_argument, ErrorCode::not_found, ErrorCode::resource_exhausted,
        ErrorCode::deadline, ErrorCode::cancelled, ErrorCode::corrupt_data, ErrorCode::io,
        ErrorCode::unsupported, ErrorCode::internal}) {
    EXPECT_NE(to_string(code), "unknown");
  }
}

TEST(CheckDeathTest, FailedCheckNamesTheCondition) {
  EXPECT_DEATH(SLUICE_CHECK(1 + 1 == 3), "base_test.cpp.*1 \\+ 1 == 3");
}

TEST(CheckedMathTest, OverflowIsAValue) {
  constexpr auto kMax = std::numeric_limits<std::int64_t>::max();
  EXPECT_EQ(checked_mul<std::int64_t>(3, 4), 12);
  EXPECT_EQ(checked_mul<std::int64_t>(kMax / 2 + 1, 2), std::nullopt);
  EXPECT_EQ(checked_add<std::int64_t>(kMax - 1, 1), kMax);
  EXPECT_EQ(checked_add<std::int64_t>(kMax, 1), std::nullopt);
  EXPECT_EQ(round_up(33, 32), 64);
  EXPECT_EQ(round_up(0, 32), 0);
  EXPECT_EQ(ceil_div(65, 64), 2);
  EXPECT_EQ(ceil_div(64, 64), 1);
}

TEST(HistogramTest, ABoundBelongsToItsBucket) {
  static constexpr std::array kBounds{1.0, 2.5, 10.0};
  Histogram histogram(kBounds);
  for (const double value : {-1.0, 1.0, 1.5, 2.5, 2.6, 10.0, 10.5, 1e9}) {
    histogram.add(value);
  }
  EXPECT_THAT(histogram.counts(), ::testing::ElementsAre(2, 2, 2, 2));
  EXPECT_EQ(histogram.count(), 8);
  EXPECT_DOUBLE_EQ(histogram.sum(), 1e9 + 27.1);
  const Histogram snapshot = histogram;
  histogram.add(0.0);
  EXPECT_EQ(snapshot.count(), 8);
}

TEST(QuantilesTest, PercentilesByNearestRank) {
  EXPECT_EQ(percentile(std::vector<double>{7}, 50), 7);
  EXPECT_EQ(percentile(std::vector<double>{1, 2}, 50), 1);
  EXPECT_EQ(percentile(std::vector<double>{1, 2}, 51), 2);
  std::vector<double> values;
  for (int i = 200; i >= 1; --i) {
    values.push_back(i);
  }
  const Quantiles all = quantiles_of(values);
  EXPECT_EQ(all.p50, 100);
  EXPECT_EQ(all.p95, 190);
  EXPECT_EQ(all.p99, 198);
  EXPECT_EQ(all.max, 200);
  EXPECT_EQ(all.count, 200U);
  EXPECT_EQ(quantiles_of({}).count, 0U);
}

TEST(LogSumExpTest, LargeAndAbsentScores) {
  EXPECT_DOUBLE_EQ(log_sum_exp(std::vector<float>{1000.0F, 1000.0F}), 1000.0 + std::log(2.0));
  EXPECT_DOUBLE_EQ(log_sum_exp(std::vector<float>{3.0F, -std::numeric_limits<float>::infinity()}),
                   3.0);
  EXPECT_TRUE(std::isnan(log_sum_exp(std::vector<float>{1.0F, std::nanf("")})));
}

}  // namespace
}  // namespace sluice
