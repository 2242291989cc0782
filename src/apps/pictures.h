// Picture files that a user names, made ready for the vision encoder of a model.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string_view>

#include "base/result.h"
#include "media/preprocessor_config.h"
#include "request/vision_input.h"
#include "weights/model_config.h"

namespace sluice::apps {

using PictureInput = std::shared_ptr<const VisionInput>;

class PictureReader {
 public:
  // `directory` is the model's: its preprocessor_config.json says which sizes the encoder wants.
  // Error unsupported: the model has no vision encoder.
  static Result<PictureReader> open(const std::filesystem::path& directory,
                                    const ModelConfig& config);

  const PreprocessorConfig& preprocessor() const { return config_; }

  // Errors name the file.
  Result<PictureInput> read(const std::filesystem::path& file) const;

 private:
  explicit PictureReader(const PreprocessorConfig& config) : config_(config) {}

  PreprocessorConfig config_;
};

// What the vision encoder needs memory for: patches of the largest picture that the model is shown
// (media/preprocessor_config.h) and that fits the context.
std::int64_t vision_patches_max(const PreprocessorConfig& config, std::int64_t context_max);

// The picture file that a line consists of, as a terminal writes one that is dragged into it:
// plain, quoted, or with escaped characters.
std::optional<std::filesystem::path> dropped_picture(std::string_view line);

}  // namespace sluice::apps
