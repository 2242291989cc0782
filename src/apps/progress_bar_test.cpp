#include "apps/progress_bar.h"

#include <gtest/gtest.h>

namespace sluice::apps {
namespace {

TEST(FormatBytes, PicksTheUnit) {
  EXPECT_EQ(format_bytes(0), "0 B");
  EXPECT_EQ(format_bytes(1023), "1023 B");
  EXPECT_EQ(format_bytes(1024), "1.00 KiB");
  EXPECT_EQ(format_bytes(std::size_t{12} << 20), "12.0 MiB");
  EXPECT_EQ(format_bytes(std::size_t{3} << 29), "1.50 GiB");
}

TEST(ProgressLine, ShowsShareAmountAndRate) {
  const ProgressLine half{
      .label = "loading", .unit = "bytes", .done = 1024, .total = 2048, .seconds = 0.5};
  EXPECT_EQ(to_string(half),
            "loading [###############...............]  50 % of 2.00 KiB, 2.00 KiB/s");
  const ProgressLine tokens{
      .label = "scoring", .unit = "tokens", .done = 100, .total = 100, .seconds = 2.0};
  EXPECT_EQ(to_string(tokens),
            "scoring [##############################] 100 % of 100 tokens, 50 tokens/s");
}

TEST(ProgressLine, NeverLeavesTheBar) {
  const ProgressLine over{.label = "x", .unit = "bytes", .done = 9, .total = 3, .seconds = 0.0};
  EXPECT_EQ(to_string(over), "x [##############################] 100 % of 3 B, 0 B/s");
  const ProgressLine nothing{.label = "x", .unit = "bytes", .done = 0, .total = 0, .seconds = 1.0};
  EXPECT_EQ(to_string(nothing), "x [##############################] 100 % of 0 B, 0 B/s");
}

}  // namespace
}  // namespace sluice::apps
