// A picture as a request carries it: resized for the vision encoder, not yet cut into patches, and
// where in the prompt its rows belong. Made by media/, encoded by model/, compared by engine/.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

namespace sluice {

// Side of a patch in pixels, and patches along each side of what becomes one row of the prompt.
// Every release has these; other values are refused when the model is loaded.
inline constexpr std::int64_t kVisionPatchSize = 16;
inline constexpr std::int64_t kVisionMergeSize = 2;

using VisionDigest = std::array<std::uint8_t, 32>;

// One picture, or two successive frames of a video: what the encoder attends over at once.
struct VisionInput {
  std::int64_t grid_rows = 0;  // patches; multiples of kVisionMergeSize
  std::int64_t grid_columns = 0;
  std::int64_t frame_count = 1;      // 1: a picture; 2: of a video
  std::vector<std::uint8_t> pixels;  // RGB, [frame_count][16 grid_rows][16 grid_columns][3]
  // SHA-256 over the sizes and the pixels: inputs with the same one are the same.
  VisionDigest digest{};

  // Rows of the prompt that it fills.
  std::int64_t token_count() const {
    return grid_rows * grid_columns / (kVisionMergeSize * kVisionMergeSize);
  }
};

// An input at its place: it fills the token_count() placeholders from `position` on.
struct VisionSpan {
  std::int64_t position = 0;
  std::shared_ptr<const VisionInput> input;
};

}  // namespace sluice
