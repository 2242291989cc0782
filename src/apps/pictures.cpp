#include "apps/pictures.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <string>
#include <utility>

#include "media/image_decoder.h"
#include "media/picture_input.h"
#include "media/picture_type.h"
#include "platform/mapped_file.h"

namespace sluice::apps {
namespace {

Error in_file(Error error, const std::filesystem::path& file) {
  error.message = fmt::format("{}: {}", file.string(), error.message);
  return error;
}

std::string unquoted(std::string_view text) {
  const bool quoted = text.size() >= 2 && (text.front() == '\'' || text.front() == '"') &&
                      text.front() == text.back();
  if (quoted) {
    return std::string(text.substr(1, text.size() - 2));
  }
  std::string plain;
  for (std::size_t i = 0; i < text.size(); ++i) {
    i += text[i] == '\\' && i + 1 < text.size() ? 1 : 0;
    plain += text[i];
  }
  return plain;
}

}  // namespace

Result<PictureReader> PictureReader::open(const std::filesystem::path& directory,
                                          const ModelConfig& config) {
  if (!config.vision) {
    return fail(ErrorCode::unsupported,
                fmt::format("{}: the model has no vision encoder: it sees no pictures",
                            directory.string()));
  }
  return PictureReader(SLUICE_TRY(load_preprocessor_config(directory)));
}

Result<PictureInput> PictureReader::read(const std::filesystem::path& file) const {
  const PictureLimits limits;
  const std::string content = SLUICE_TRY(read_text_file(file, limits.encoded_bytes_max));
  const auto picture = decode_picture(std::as_bytes(std::span(content)), limits);
  if (!picture) {
    return std::unexpected(in_file(picture.error(), file));
  }
  auto input = make_vision_input(*picture, config_.picture);
  if (!input) {
    return std::unexpected(in_file(input.error(), file));
  }
  return std::make_shared<const VisionInput>(*std::move(input));
}

std::int64_t vision_patches_max(const PreprocessorConfig& config, std::int64_t context_max) {
  constexpr std::int64_t kPatchesOfToken = kVisionMergeSize * kVisionMergeSize;
  constexpr std::int64_t kPatchPixels = kVisionPatchSize * kVisionPatchSize;
  return std::min(encoder_pixels_max(config) / kPatchPixels, kPatchesOfToken * context_max);
}

std::optional<std::filesystem::path> dropped_picture(std::string_view line) {
  const std::size_t begin = line.find_first_not_of(" \t");
  if (begin == std::string_view::npos) {
    return std::nullopt;
  }
  line = line.substr(begin, line.find_last_not_of(" \t") - begin + 1);
  const std::filesystem::path path = unquoted(line);
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error)) {
    return std::nullopt;
  }
  std::array<char, 64> head{};
  std::ifstream file(path, std::ios::binary);
  file.read(head.data(), head.size());
  const auto bytes = std::as_bytes(std::span(head).first(static_cast<std::size_t>(file.gcount())));
  return sniff_picture_type(bytes) ? std::optional(path) : std::nullopt;
}

}  // namespace sluice::apps
