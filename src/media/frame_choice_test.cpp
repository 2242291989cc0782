#include "media/frame_choice.h"

#include <gtest/gtest.h>

#include <limits>

#include "media/test_pictures.h"

namespace sluice {
namespace {

boost::json::value geometry() {
  return test::read_json(std::filesystem::path(SLUICE_SOURCE_DIR) / "tests/goldens/geometry.json");
}

std::vector<std::int64_t> integers_in(const boost::json::value& list) {
  std::vector<std::int64_t> result;
  for (const boost::json::value& item : list.as_array()) {
    result.push_back(item.as_int64());
  }
  return result;
}

TEST(FrameChoice, Goldens) {
  const boost::json::value goldens = geometry();
  ASSERT_GE(goldens.at("sample_frames").as_array().size(), 5U);
  for (const boost::json::value& entry : goldens.at("sample_frames").as_array()) {
    const FrameSource source{.frame_count = entry.at("total").as_int64(),
                             .frames_per_second = entry.at("source_fps").to_number<double>()};
    const FrameRule rule{.frames_per_second = entry.at("fps").to_number<double>()};
    EXPECT_EQ(choose_frames(source, rule).value(), integers_in(entry.at("indices"))) << entry;
  }
}

TEST(FrameChoice, GoldenTimes) {
  const boost::json::value goldens = geometry();
  ASSERT_GE(goldens.at("timestamps").as_array().size(), 2U);
  for (const boost::json::value& entry : goldens.at("timestamps").as_array()) {
    const std::vector<double> seconds =
        group_seconds(integers_in(entry.at("indices")), entry.at("source_fps").to_number<double>());
    ASSERT_EQ(seconds.size(), entry.at("out").as_array().size());
    for (std::size_t i = 0; i < seconds.size(); ++i) {
      EXPECT_EQ(seconds[i], entry.at("out").at(i).to_number<double>()) << entry;
    }
  }
}

// The kept frames of the reference model's golden: ten frames at four a second, 2 a second wanted.
TEST(FrameChoice, TimesRoundAsInPython) {
  const std::vector<std::int64_t> frames =
      choose_frames({.frame_count = 10, .frames_per_second = 4.0}, {}).value();
  EXPECT_EQ(frames, (std::vector<std::int64_t>{0, 2, 4, 7, 9}));
  const std::vector<std::int64_t> kept{0, 2, 5, 7, 9};
  std::string text;
  for (const double seconds : group_seconds(kept, 4.0)) {
    text += seconds_text(seconds);
  }
  EXPECT_EQ(text, "<0.2 seconds><1.5 seconds><2.2 seconds>");
  EXPECT_EQ(seconds_text(0.35), "<0.3 seconds>");
  EXPECT_EQ(seconds_text(0.75), "<0.8 seconds>");
  EXPECT_EQ(seconds_text(3600.0), "<3600.0 seconds>");
}

TEST(FrameChoice, AlwaysAscendingFromFirstToLast) {
  for (std::int64_t total = 1; total < 3000; total = total * 4 / 3 + 1) {
    for (const double rate : {0.5, 12.0, 23.976, 29.97, 240.0}) {
      const std::vector<std::int64_t> frames =
          choose_frames({.frame_count = total, .frames_per_second = rate}, {}).value();
      ASSERT_LE(static_cast<std::int64_t>(frames.size()), std::min<std::int64_t>(total, 768));
      ASSERT_GE(static_cast<std::int64_t>(frames.size()), std::min<std::int64_t>(total, 4));
      EXPECT_EQ(frames.front(), 0);
      EXPECT_EQ(frames.back(), total - 1);
      for (std::size_t i = 1; i < frames.size(); ++i) {
        ASSERT_LT(frames[i - 1], frames[i]) << total << " frames at " << rate;
      }
    }
  }
}

TEST(FrameChoice, RefusesWhatIsNone) {
  const auto refused = [](FrameSource source, const FrameRule& rule, std::string_view part) {
    EXPECT_ERROR(choose_frames(source, rule), ErrorCode::invalid_argument, {part});
  };
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  refused({.frame_count = 0}, {}, "video of 0 frames");
  refused({.frame_count = INT64_MAX}, {}, "video of 9223372036854775807 frames");
  for (const double rate : {0.0, -1.0, kNan, kInfinity, 1e300}) {
    refused({.frame_count = 9, .frames_per_second = rate}, {}, "video of");
    refused({.frame_count = 9}, {.frames_per_second = rate}, "sampling of");
  }
  refused({.frame_count = 9}, {.frames_min = 0}, "sampling of 0 to 768");
  refused({.frame_count = 9}, {.frames_min = 5, .frames_max = 4}, "sampling of 5 to 4");
  refused({.frame_count = 9}, {.frames_max = INT64_MAX}, "fewest <= most");
}

}  // namespace
}  // namespace sluice
