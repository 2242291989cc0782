// From a decoded picture to what the vision encoder takes: resized, with the digest by which the
// engine tells inputs apart.
#pragma once

#include <cstdint>
#include <span>

#include "base/result.h"
#include "media/encoder_size.h"
#include "media/picture.h"
#include "request/vision_input.h"

namespace sluice {

// Errors as encoder_size().
Result<VisionInput> make_vision_input(const Picture& picture, PixelBudget budget);

// Rows of the prompt that a picture of this size fills, without its pixels. Errors likewise.
Result<std::int64_t> vision_token_count(PictureSize size, PixelBudget budget);

// An input of `frames` (one, or two for a group of a video), all of this size, whose sides are
// multiples of 32 (checked).
VisionInput join_frames(std::span<const Picture> frames);

}  // namespace sluice
