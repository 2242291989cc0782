#include "media/video_input.h"

#include <gtest/gtest.h>

#include "media/picture_input.h"
#include "media/resize.h"
#include "media/test_pictures.h"

namespace sluice {
namespace {

constexpr PixelBudget kBudget{.pixels_min = 4096, .pixels_max = 65536};

VideoFacts facts_of(std::int64_t frames, double rate) {
  return {.size = {.width = 64, .height = 96}, .frame_count = frames, .frames_per_second = rate};
}

TEST(VideoInput, PlanOfTheReferenceModelsGolden) {
  const VideoPlan plan = plan_video(facts_of(10, 4.0), {}, kBudget).value();
  EXPECT_EQ(plan.frames, (std::vector<std::int64_t>{0, 2, 4, 7, 9}));
  EXPECT_EQ(plan.seconds, (std::vector<double>{0.25, 1.375, 2.25}));
  EXPECT_EQ(plan.frame_size, (PictureSize{.width = 64, .height = 96}));
  EXPECT_EQ(plan.tokens_per_group(), 6);
}

TEST(VideoInput, InputsFollowThePlan) {
  const auto bytes = test::read_bytes(test::testdata() / "videos" / "h264.mp4");
  const VideoFacts facts = read_video_facts(bytes, {}).value();
  const FrameRule rule{.frames_per_second = 4.0};
  const VideoPlan plan = plan_video(facts, rule, kBudget).value();
  ASSERT_EQ(plan.frames, (std::vector<std::int64_t>{0, 4, 7, 11}));
  const std::vector<VisionInput> inputs = make_video_inputs(bytes, plan, {}).value();
  ASSERT_EQ(inputs.size(), plan.seconds.size());
  for (const VisionInput& input : inputs) {
    EXPECT_EQ(input.frame_count, 2);
    EXPECT_EQ(input.token_count(), plan.tokens_per_group());
    EXPECT_EQ(input.pixels.size(), static_cast<std::size_t>(plan.frame_size.pixel_count()) * 6);
  }
  EXPECT_NE(inputs[0].digest, inputs[1].digest);
}

TEST(VideoInput, PicturesAsFrames) {
  std::vector<Picture> pictures;
  for (std::int64_t i = 0; i < 3; ++i) {
    pictures.push_back(test::formula_picture({.width = 50, .height = 70}));
    pictures.back().pixels[0] = static_cast<std::uint8_t>(i);
  }
  const VideoPlan plan =
      plan_frames(pictures[0].size, {.frame_count = 3, .frames_per_second = 2.0}, kBudget).value();
  EXPECT_EQ(plan.frames, (std::vector<std::int64_t>{0, 1, 2}));
  EXPECT_EQ(plan.seconds, (std::vector<double>{0.25, 1.0}));
  const std::vector<VisionInput> inputs = make_video_inputs(pictures, plan).value();
  ASSERT_EQ(inputs.size(), 2U);
  const Picture last = resize(pictures[2], plan.frame_size);
  EXPECT_EQ(inputs[1].digest, join_frames(std::vector{last, last}).digest);

  pictures[1] = test::formula_picture({.width = 51, .height = 70});
  EXPECT_ERROR(make_video_inputs(pictures, plan), ErrorCode::invalid_argument,
               {"frame 1 of a video has 51 x 70 pixels, the first one 50 x 70"});
  pictures.pop_back();
  EXPECT_ERROR(make_video_inputs(pictures, plan), ErrorCode::invalid_argument,
               {"2 pictures for a video of 3 frames"});
}

TEST(VideoInput, ASingleFrameIsAGroup) {
  const VideoPlan plan = plan_video(facts_of(1, 30.0), {}, kBudget).value();
  EXPECT_EQ(plan.frames, (std::vector<std::int64_t>{0}));
  EXPECT_EQ(plan.seconds, (std::vector<double>{0.0}));
  const std::vector<VisionInput> inputs =
      make_video_inputs(std::vector{test::formula_picture({.width = 64, .height = 96})}, plan)
          .value();
  ASSERT_EQ(inputs.size(), 1U);
  EXPECT_EQ(inputs[0].frame_count, 2);
}

TEST(VideoInput, RefusesWhatCannotBePlanned) {
  EXPECT_ERROR(plan_video(facts_of(0, 30.0), {}, kBudget), ErrorCode::invalid_argument,
               {"0 frames"});
  EXPECT_ERROR(plan_video(facts_of(5, 0.0), {}, kBudget), ErrorCode::invalid_argument,
               {"a second"});
  EXPECT_ERROR(plan_frames({.width = 1, .height = 201}, {.frame_count = 4}, kBudget),
               ErrorCode::invalid_argument, {"200 times"});
  EXPECT_ERROR(plan_frames({.width = 9, .height = 9}, {.frame_count = INT64_MAX}, kBudget),
               ErrorCode::invalid_argument, {"frames"});
}

}  // namespace
}  // namespace sluice
