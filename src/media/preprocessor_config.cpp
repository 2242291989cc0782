#include "media/preprocessor_config.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <boost/json/object.hpp>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <boost/json/value.hpp>
#include <cmath>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "platform/mapped_file.h"
#include "request/vision_input.h"

namespace sluice {
namespace {

namespace json = boost::json;

constexpr std::size_t kConfigBytesMax = std::size_t{1} << 20;
constexpr double kPixelsMax = 1099511627776.0;  // 2^40
constexpr double kFrameRateMax = 240.0;
constexpr double kFramesMax = 65536.0;
constexpr double kBicubic = 3.0;  // PIL.Image.Resampling.BICUBIC
constexpr double kRescaleTolerance = 1e-9;

struct Range {
  double min = 0.0;
  double max = 0.0;
};

// One JSON file, read field by field. A JSON null counts as absent.
struct ConfigFile {
  std::string path;
  json::object object;

  const json::value* find(std::string_view key) const {
    const json::value* value = object.if_contains(json::string_view(key.data(), key.size()));
    return value != nullptr && !value->is_null() ? value : nullptr;
  }

  std::unexpected<Error> refuse(ErrorCode code, std::string_view key, const json::value& value,
                                std::string_view want) const {
    return fail(code, fmt::format("{}: {} is {}, want {}", path, key, json::serialize(value), want),
                std::string(key));
  }
};

std::optional<double> as_number(const json::value& value) {
  json::error_code error;
  const auto number = value.is_number() ? value.to_number<double>(error) : 0.0;
  return !value.is_number() || error || !std::isfinite(number) ? std::nullopt
                                                               : std::optional(number);
}

// Writes the field to `result` when it is there.
Result<void> read_number(const ConfigFile& file, std::string_view key, Range range,
                         double* result) {
  const json::value* value = file.find(key);
  if (value == nullptr) {
    return {};
  }
  const std::optional<double> number = as_number(*value);
  if (!number || *number < range.min || *number > range.max) {
    return file.refuse(ErrorCode::corrupt_data, key, *value,
                       fmt::format("a number from {} to {}", range.min, range.max));
  }
  *result = *number;
  return {};
}

Result<void> read_integer(const ConfigFile& file, std::string_view key, Range range,
                          std::int64_t* result) {
  auto number = static_cast<double>(*result);
  SLUICE_TRY(read_number(file, key, range, &number));
  if (std::trunc(number) != number) {
    return file.refuse(ErrorCode::corrupt_data, key, *file.find(key), "an integer");
  }
  *result = static_cast<std::int64_t>(number);
  return {};
}

Result<void> require_number(const ConfigFile& file, std::string_view key, double wanted) {
  const json::value* value = file.find(key);
  if (value == nullptr) {
    return {};
  }
  const std::optional<double> number = as_number(*value);
  if (!number || std::abs(*number - wanted) > kRescaleTolerance) {
    return file.refuse(ErrorCode::unsupported, key, *value, fmt::format("{}", wanted));
  }
  return {};
}

Result<void> require_true(const ConfigFile& file, std::string_view key) {
  const json::value* value = file.find(key);
  if (value != nullptr && !(value->is_bool() && value->get_bool())) {
    return file.refuse(ErrorCode::unsupported, key, *value, "true");
  }
  return {};
}

// Three channels of 0.5.
Result<void> require_halves(const ConfigFile& file, std::string_view key) {
  constexpr std::size_t kChannels = 3;
  const json::value* value = file.find(key);
  if (value == nullptr) {
    return {};
  }
  const json::array* list = value->if_array();
  bool good = list != nullptr && list->size() == kChannels;
  for (std::size_t i = 0; good && i < kChannels; ++i) {
    good = as_number((*list)[i]) == 0.5;
  }
  return good ? Result<void>()
              : file.refuse(ErrorCode::unsupported, key, *value, "[0.5, 0.5, 0.5]");
}

Result<void> require_known_steps(const ConfigFile& file) {
  SLUICE_TRY(require_number(file, "patch_size", double{kVisionPatchSize}));
  SLUICE_TRY(require_number(file, "merge_size", double{kVisionMergeSize}));
  SLUICE_TRY(require_number(file, "temporal_patch_size", 2.0));
  SLUICE_TRY(require_number(file, "rescale_factor", 1.0 / 255.0));
  SLUICE_TRY(require_number(file, "resample", kBicubic));
  SLUICE_TRY(require_halves(file, "image_mean"));
  SLUICE_TRY(require_halves(file, "image_std"));
  constexpr std::array kSteps{"do_resize", "do_rescale", "do_normalize", "do_convert_rgb",
                              "do_sample_frames"};
  for (const std::string_view step : kSteps) {
    SLUICE_TRY(require_true(file, step));
  }
  return {};
}

// `size` holds areas under the names of edges; min_pixels and max_pixels are what older files say,
// and win over it, as in the reference.
Result<void> read_budget(const ConfigFile& file, PixelBudget* budget) {
  constexpr Range kPixels{.min = 1.0, .max = kPixelsMax};
  if (const json::value* value = file.find("size")) {
    if (!value->is_object()) {
      return file.refuse(ErrorCode::corrupt_data, "size", *value, "an object");
    }
    const ConfigFile size{.path = file.path + ": size", .object = value->get_object()};
    for (const auto& [key, item] : size.object) {
      if (key != "shortest_edge" && key != "longest_edge") {
        return size.refuse(ErrorCode::unsupported, key, item,
                           "shortest_edge and longest_edge alone");
      }
    }
    SLUICE_TRY(read_integer(size, "shortest_edge", kPixels, &budget->pixels_min));
    SLUICE_TRY(read_integer(size, "longest_edge", kPixels, &budget->pixels_max));
  }
  SLUICE_TRY(read_integer(file, "min_pixels", kPixels, &budget->pixels_min));
  SLUICE_TRY(read_integer(file, "max_pixels", kPixels, &budget->pixels_max));
  if (budget->pixels_min > budget->pixels_max) {
    return fail(ErrorCode::corrupt_data,
                fmt::format("{}: size.shortest_edge {} is above size.longest_edge {}", file.path,
                            budget->pixels_min, budget->pixels_max),
                "size");
  }
  return {};
}

// No value when the file does not exist.
Result<std::optional<ConfigFile>> open(const std::filesystem::path& path) {
  Result<std::string> text = read_text_file(path, kConfigBytesMax);
  if (!text && text.error().code == ErrorCode::not_found) {
    return std::optional<ConfigFile>();
  }
  if (!text) {
    return std::unexpected(std::move(text).error());
  }
  json::error_code error;
  json::value value = json::parse(*text, error);
  if (error || !value.is_object()) {
    return fail(ErrorCode::corrupt_data,
                fmt::format("{}: {}", path.string(),
                            error ? "not JSON: " + error.message() : "want a JSON object"),
                path.string());
  }
  return std::optional(ConfigFile{.path = path.string(), .object = std::move(value.get_object())});
}

Result<void> read_frame_choice(const ConfigFile& file, PreprocessorConfig* config) {
  SLUICE_TRY(
      read_number(file, "fps", {.min = 0.01, .max = kFrameRateMax}, &config->frames_per_second));
  SLUICE_TRY(
      read_integer(file, "min_frames", {.min = 2.0, .max = kFramesMax}, &config->frames_min));
  SLUICE_TRY(
      read_integer(file, "max_frames", {.min = 2.0, .max = kFramesMax}, &config->frames_max));
  if (config->frames_min > config->frames_max) {
    return fail(ErrorCode::corrupt_data,
                fmt::format("{}: min_frames {} is above max_frames {}", file.path,
                            config->frames_min, config->frames_max),
                "min_frames");
  }
  const json::value* capped = file.find("cap_pixels_per_frame");
  if (capped != nullptr && !(capped->is_bool() && !capped->get_bool())) {
    return file.refuse(ErrorCode::unsupported, "cap_pixels_per_frame", *capped, "false");
  }
  if (const json::value* count = file.find("num_frames")) {
    return file.refuse(ErrorCode::unsupported, "num_frames", *count, "no fixed number of frames");
  }
  return {};
}

}  // namespace

std::int64_t encoder_pixels_max(const PreprocessorConfig& config) {
  constexpr std::int64_t kFactor = kVisionPatchSize * kVisionMergeSize;
  constexpr std::int64_t kNarrowest = kFactor * kFactor * kSideRatioMax;  // no side gets shorter
  return std::max({config.picture.pixels_max, config.video.pixels_max / 2, kNarrowest});
}

Result<PreprocessorConfig> load_preprocessor_config(const std::filesystem::path& model_directory) {
  PreprocessorConfig config;
  if (const auto file = SLUICE_TRY(open(model_directory / "preprocessor_config.json"))) {
    SLUICE_TRY(require_known_steps(*file));
    SLUICE_TRY(read_budget(*file, &config.picture));
  }
  if (const auto file = SLUICE_TRY(open(model_directory / "video_preprocessor_config.json"))) {
    SLUICE_TRY(require_known_steps(*file));
    SLUICE_TRY(read_budget(*file, &config.video));
    SLUICE_TRY(read_frame_choice(*file, &config));
  }
  return config;
}

}  // namespace sluice
