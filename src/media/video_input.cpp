#include "media/video_input.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "media/picture_input.h"
#include "media/resize.h"

namespace sluice {
namespace {

Result<VideoPlan> plan(PictureSize size, std::vector<std::int64_t> frames, double source_rate,
                       PixelBudget budget) {
  VideoPlan result;
  const auto count = std::max(static_cast<std::int64_t>(frames.size()), kFramesPerGroup);
  result.frame_size = SLUICE_TRY(encoder_frame_size(size, count, budget));
  result.seconds = group_seconds(frames, source_rate);
  result.frames = std::move(frames);
  return result;
}

// Frames come one by one; two make an input, the last one twice when it is alone.
class GroupMaker {
 public:
  explicit GroupMaker(PictureSize size) : size_(size) {}

  void add(const Picture& frame) {
    group_.push_back(resize(frame, size_));
    if (group_.size() == static_cast<std::size_t>(kFramesPerGroup)) {
      inputs_.push_back(join_frames(group_));
      group_.clear();
    }
  }

  std::vector<VisionInput> finish() {
    if (!group_.empty()) {
      group_.push_back(group_.front());
      inputs_.push_back(join_frames(group_));
    }
    return std::move(inputs_);
  }

 private:
  PictureSize size_;
  std::vector<Picture> group_;
  std::vector<VisionInput> inputs_;
};

}  // namespace

std::int64_t VideoPlan::tokens_per_group() const {
  constexpr std::int64_t kTokenSide = kVisionPatchSize * kVisionMergeSize;
  return frame_size.pixel_count() / (kTokenSide * kTokenSide);
}

Result<VideoPlan> plan_video(const VideoFacts& facts, const FrameRule& rule, PixelBudget budget) {
  const FrameSource source{.frame_count = facts.frame_count,
                           .frames_per_second = facts.frames_per_second};
  return plan(facts.size, SLUICE_TRY(choose_frames(source, rule)), source.frames_per_second,
              budget);
}

Result<VideoPlan> plan_frames(PictureSize size, FrameSource source, PixelBudget budget) {
  // A rule that keeps every frame checks the source, too.
  const FrameRule all{.frames_min = std::max(source.frame_count, std::int64_t{1}),
                      .frames_max = std::max(source.frame_count, std::int64_t{1})};
  return plan(size, SLUICE_TRY(choose_frames(source, all)), source.frames_per_second, budget);
}

Result<std::vector<VisionInput>> make_video_inputs(std::span<const std::byte> bytes,
                                                   const VideoPlan& plan, const VideoLimits& limits,
                                                   const GivesUp& gives_up) {
  GroupMaker groups(plan.frame_size);
  const auto take = [&groups](const Picture& frame) {
    groups.add(frame);
    return Result<void>();
  };
  SLUICE_TRY(decode_frames(bytes, plan.frames, limits, gives_up, take));
  return groups.finish();
}

Result<std::vector<VisionInput>> make_video_inputs(std::span<const Picture> pictures,
                                                   const VideoPlan& plan) {
  if (pictures.size() != plan.frames.size()) {
    return fail(ErrorCode::invalid_argument, fmt::format("{} pictures for a video of {} frames",
                                                         pictures.size(), plan.frames.size()));
  }
  GroupMaker groups(plan.frame_size);
  for (std::size_t i = 0; i < pictures.size(); ++i) {
    const PictureSize size = pictures[i].size;
    const PictureSize first = pictures.front().size;
    if (size != first) {
      return fail(ErrorCode::invalid_argument,
                  fmt::format("frame {} of a video has {} x {} pixels, the first one {} x {}", i,
                              size.width, size.height, first.width, first.height));
    }
    groups.add(pictures[i]);
  }
  return groups.finish();
}

}  // namespace sluice
