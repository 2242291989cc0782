// From a video, or from pictures that are its frames, to what the vision encoder takes: groups of
// two frames, each preceded by its time in the prompt. A plan says everything about the prompt and
// needs no pixel; the inputs follow from it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/result.h"
#include "media/encoder_size.h"
#include "media/frame_choice.h"
#include "media/video_file.h"
#include "request/vision_input.h"

namespace sluice {

// What the prompt says: for each group seconds_text(seconds), then vision_start, tokens_per_group()
// placeholders and vision_end.
struct VideoPlan {
  std::vector<std::int64_t> frames;  // indices in the source, ascending, at least one
  PictureSize frame_size;            // as the encoder sees each
  std::vector<double> seconds;       // one for each group of two frames

  std::int64_t tokens_per_group() const;
};

// Errors as choose_frames() and encoder_frame_size(). A video of a single frame is planned as two.
Result<VideoPlan> plan_video(const VideoFacts& facts, const FrameRule& rule, PixelBudget budget);

// All of `frame_count` pictures of this size, taken at a rate.
Result<VideoPlan> plan_frames(PictureSize size, FrameSource source, PixelBudget budget);

// One input for each group of the plan. Errors as decode_frames().
Result<std::vector<VisionInput>> make_video_inputs(std::span<const std::byte> bytes,
                                                   const VideoPlan& plan, const VideoLimits& limits,
                                                   const GivesUp& gives_up = {});

// The same from pictures: as many as the plan has frames. Errors: invalid_argument when they are
// not, or not all of one size.
Result<std::vector<VisionInput>> make_video_inputs(std::span<const Picture> pictures,
                                                   const VideoPlan& plan);

}  // namespace sluice
