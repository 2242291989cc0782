#include "media/picture_input.h"

#include <gtest/gtest.h>
#include <openssl/sha.h>

#include "media/test_pictures.h"

namespace sluice {
namespace {

constexpr PixelBudget kSmall{.pixels_min = 1024, .pixels_max = 65536};

TEST(PictureInput, IsResizedAndCounted) {
  const VisionInput input =
      make_vision_input(test::formula_picture({.width = 100, .height = 60}), kSmall).value();
  EXPECT_EQ(input.grid_rows, 4);
  EXPECT_EQ(input.grid_columns, 6);
  EXPECT_EQ(input.frame_count, 1);
  EXPECT_EQ(input.pixels.size(), 64U * 96U * 3U);
  EXPECT_EQ(input.token_count(), 6);
  EXPECT_EQ(vision_token_count({.width = 100, .height = 60}, kSmall).value(), 6);
}

// The digest is part of what a prefix is known by: its bytes must never change by accident.
TEST(PictureInput, DigestIsOverSizesAndPixels) {
  const VisionInput input =
      join_frames(std::vector{test::formula_picture({.width = 64, .height = 32})});
  std::vector<std::uint8_t> hashed(24, 0);
  hashed[0] = 2;   // grid_rows
  hashed[8] = 4;   // grid_columns
  hashed[16] = 1;  // frame_count
  hashed.insert(hashed.end(), input.pixels.begin(), input.pixels.end());
  std::array<std::uint8_t, SHA256_DIGEST_LENGTH> want{};
  SHA256(hashed.data(), hashed.size(), want.data());
  EXPECT_EQ(input.digest, want);
}

TEST(PictureInput, DigestsDifferWithShapePixelsAndFrames) {
  const Picture wide = test::formula_picture({.width = 64, .height = 32});
  Picture tall = wide;
  std::swap(tall.size.width, tall.size.height);
  Picture changed = wide;
  changed.pixels.back() ^= 1U;
  const auto digest = join_frames(std::vector{wide}).digest;
  EXPECT_EQ(digest, join_frames(std::vector{wide}).digest);
  EXPECT_NE(digest, join_frames(std::vector{tall}).digest);
  EXPECT_NE(digest, join_frames(std::vector{changed}).digest);
  const VisionInput two = join_frames(std::vector{wide, changed});
  EXPECT_NE(digest, two.digest);
  EXPECT_EQ(two.frame_count, 2);
  EXPECT_EQ(two.token_count(), 2);
  EXPECT_NE(two.digest, join_frames(std::vector{changed, wide}).digest);
}

TEST(PictureInput, RefusesWhatHasNoSize) {
  EXPECT_ERROR(make_vision_input(test::formula_picture({.width = 1, .height = 201}), kSmall),
               ErrorCode::invalid_argument, {"1 x 201", "200 times"});
}

}  // namespace
}  // namespace sluice
