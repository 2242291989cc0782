#include "server/decoded_budget.h"

#include <gtest/gtest.h>

namespace sluice {
namespace {

VisionInput input_of(std::size_t bytes) {
  VisionInput input;
  input.pixels.resize(bytes);
  return input;
}

TEST(DecodedBudget, EndsWhereTheLastOwnerOfAnInputEnds) {
  const DecodedBudget budget(100);
  std::shared_ptr<const VisionInput> held;
  {
    auto share = budget.take(70);
    ASSERT_TRUE(share);
    held = share->hold(input_of(40));
    EXPECT_EQ(budget.bytes_used(), 70U);
    EXPECT_FALSE(budget.take(31));
    EXPECT_TRUE(budget.take(30));
  }
  EXPECT_EQ(budget.bytes_used(), 40U);  // what no input got went back
  auto copy = held;
  held.reset();
  EXPECT_EQ(budget.bytes_used(), 40U);
  copy.reset();
  EXPECT_EQ(budget.bytes_used(), 0U);
}

TEST(DecodedBudget, InputsMayOutliveIt) {
  std::shared_ptr<const VisionInput> held;
  {
    const DecodedBudget budget(100);
    held = budget.take(100)->hold(input_of(100));
  }
  EXPECT_EQ(held->pixels.size(), 100U);
}

TEST(DecodedBudget, IsNeverExceeded) {
  const DecodedBudget budget(10);
  EXPECT_FALSE(budget.take(11));
  const auto all = budget.take(10);
  EXPECT_TRUE(all);
  EXPECT_FALSE(budget.take(1));
  EXPECT_TRUE(budget.take(0));
}

}  // namespace
}  // namespace sluice
