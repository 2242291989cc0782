// The size at which the vision encoder sees a picture or the frames of a video: sides are multiples
// of 32 pixels, near the original's, with an area inside a budget. The arithmetic is that of
// transformers (`smart_resize` of Qwen2-VL and Qwen3-VL), including Python's rounding of halves to
// even, because the number of prompt tokens follows from it.
#pragma once

#include <cstdint>

#include "base/result.h"
#include "media/picture.h"

namespace sluice {

// Limits of the area in pixels. For a video, of all frames together.
struct PixelBudget {
  std::int64_t pixels_min = 0;
  std::int64_t pixels_max = 0;
};

// Longer side over shorter side.
inline constexpr std::int64_t kSideRatioMax = 200;

// Errors: invalid_argument for an empty or longer than kPictureSideMax side, a ratio above
// kSideRatioMax, or a budget that is none (want 1 <= pixels_min <= pixels_max <= 2^40).
Result<PictureSize> encoder_size(PictureSize size, PixelBudget budget);

// The size of every frame of a video of which `frame_count` frames are kept, at least two.
Result<PictureSize> encoder_frame_size(PictureSize size, std::int64_t frame_count,
                                       PixelBudget budget);

}  // namespace sluice
