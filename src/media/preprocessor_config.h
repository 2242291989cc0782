// preprocessor_config.json and video_preprocessor_config.json: how the reference prepares pictures
// and videos for this checkpoint. Only the pixel budgets (and the frame rate) vary between
// checkpoints; everything else must have the values that media/ and model/ implement.
#pragma once

#include <cstdint>
#include <filesystem>

#include "base/result.h"
#include "media/encoder_size.h"

namespace sluice {

// The defaults are those of every release.
struct PreprocessorConfig {
  PixelBudget picture{.pixels_min = 65536, .pixels_max = 16777216};
  PixelBudget video{.pixels_min = 4096, .pixels_max = 25165824};
  double frames_per_second = 2.0;
  std::int64_t frames_min = 4;
  std::int64_t frames_max = 768;
};

// Pixels of the largest picture, or of one of the two frames that are seen at once: what the
// budgets allow for anything that is within kSideRatioMax. Only a budget whose pixels_min is near
// its pixels_max can ask for more (encoder_size() rounds up what it enlarges).
std::int64_t encoder_pixels_max(const PreprocessorConfig& config);

// A missing file leaves the defaults. Errors name the file and the field: corrupt_data when it is
// malformed, unsupported for a value that would change what the encoder sees and is not
// implemented.
Result<PreprocessorConfig> load_preprocessor_config(const std::filesystem::path& model_directory);

}  // namespace sluice
