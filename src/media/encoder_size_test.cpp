#include "media/encoder_size.h"

#include <gtest/gtest.h>

#include "media/picture_input.h"
#include "media/test_pictures.h"

namespace sluice {
namespace {

constexpr PixelBudget kPicture{.pixels_min = 65536, .pixels_max = 16777216};
constexpr PixelBudget kVideo{.pixels_min = 4096, .pixels_max = 25165824};

boost::json::value geometry() {
  return test::read_json(std::filesystem::path(SLUICE_SOURCE_DIR) / "tests/goldens/geometry.json");
}

PictureSize size_in(const boost::json::value& entry) {
  return {.width = entry.at("width").as_int64(), .height = entry.at("height").as_int64()};
}

PictureSize want_in(const boost::json::value& entry) {
  return {.width = entry.at("out").at(1).as_int64(), .height = entry.at("out").at(0).as_int64()};
}

TEST(EncoderSize, GoldenPictures) {
  const boost::json::value goldens = geometry();
  ASSERT_GE(goldens.at("smart_resize_image").as_array().size(), 10U);
  for (const boost::json::value& entry : goldens.at("smart_resize_image").as_array()) {
    const Result<PictureSize> size = encoder_size(size_in(entry), kPicture);
    ASSERT_TRUE(size.has_value()) << size.error().message;
    EXPECT_EQ(*size, want_in(entry)) << entry;
  }
}

TEST(EncoderSize, GoldenVideos) {
  const boost::json::value goldens = geometry();
  ASSERT_GE(goldens.at("smart_resize_video").as_array().size(), 7U);
  for (const boost::json::value& entry : goldens.at("smart_resize_video").as_array()) {
    const Result<PictureSize> size =
        encoder_frame_size(size_in(entry), entry.at("frames").as_int64(), kVideo);
    ASSERT_TRUE(size.has_value()) << size.error().message;
    EXPECT_EQ(*size, want_in(entry)) << entry;
  }
}

TEST(EncoderSize, HalvesGoToTheEvenMultiple) {
  constexpr PixelBudget kWide{.pixels_min = 1, .pixels_max = 1 << 30};
  EXPECT_EQ(encoder_size({.width = 48, .height = 80}, kWide).value(),
            (PictureSize{.width = 64, .height = 64}));
  EXPECT_EQ(encoder_size({.width = 112, .height = 49}, kWide).value(),
            (PictureSize{.width = 128, .height = 64}));
}

// A side that rounds to nothing makes the area 0, which is below every budget: both sides grow.
TEST(EncoderSize, ThinPicturesGrow) {
  EXPECT_EQ(encoder_size({.width = 16, .height = 3200}, kPicture).value(),
            (PictureSize{.width = 32, .height = 3648}));
  EXPECT_EQ(encoder_size({.width = 1, .height = 200}, kPicture).value(),
            (PictureSize{.width = 32, .height = 3648}));
}

TEST(EncoderSize, FramesSmallerThanATokenAreEnlargedFirst) {
  EXPECT_EQ(encoder_frame_size({.width = 10, .height = 20}, 4, kVideo).value(),
            (PictureSize{.width = 32, .height = 64}));
}

TEST(EncoderSize, EveryAllowedSizeGivesWholeTokens) {
  for (std::int64_t width = 1; width <= kPictureSideMax; width = width * 5 / 4 + 1) {
    for (std::int64_t height = 1; height <= kPictureSideMax; height = height * 4 / 3 + 1) {
      const Result<PictureSize> size = encoder_size({.width = width, .height = height}, kPicture);
      const bool allowed = std::max(width, height) <= 200 * std::min(width, height);
      ASSERT_EQ(size.has_value(), allowed) << width << " x " << height;
      if (!allowed) {
        continue;
      }
      EXPECT_EQ(size->width % 32, 0);
      EXPECT_EQ(size->height % 32, 0);
      EXPECT_GE(size->pixel_count(), 32 * 32);
      EXPECT_LE(size->pixel_count(), kPicture.pixels_max) << width << " x " << height;
      EXPECT_EQ(vision_token_count({.width = width, .height = height}, kPicture).value(),
                size->pixel_count() / 1024);
    }
  }
}

TEST(EncoderSize, RefusesWhatHasNoSize) {
  const auto refused = [](PictureSize size, PixelBudget budget, std::string_view part) {
    EXPECT_ERROR(encoder_size(size, budget), ErrorCode::invalid_argument, {part});
    EXPECT_ERROR(encoder_frame_size(size, 4, budget), ErrorCode::invalid_argument, {part});
  };
  refused({.width = 0, .height = 5}, kPicture, "0 x 5");
  refused({.width = 5, .height = -1}, kPicture, "5 x -1");
  refused({.width = 65536, .height = 65000}, kPicture, "sides from 1 to 65535");
  refused({.width = INT64_MAX, .height = INT64_MAX}, kPicture, "sides from 1 to 65535");
  refused({.width = 40, .height = 40 * 200 + 1}, kPicture, "more than 200 times");
  refused({.width = 40, .height = 40}, {.pixels_min = 0, .pixels_max = 5}, "limits from 0 to 5");
  refused({.width = 40, .height = 40}, {.pixels_min = 9, .pixels_max = 5}, "limits from 9 to 5");
  refused({.width = 40, .height = 40}, {.pixels_min = 9, .pixels_max = INT64_MAX}, "1 <= smallest");
  for (const std::int64_t frames : {std::int64_t{-1}, std::int64_t{1}, INT64_MAX}) {
    EXPECT_ERROR(encoder_frame_size({.width = 40, .height = 40}, frames, kVideo),
                 ErrorCode::invalid_argument, {"frames, want 2"});
  }
}

}  // namespace
}  // namespace sluice
