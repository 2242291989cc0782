// Reads generation_config.json and what replaces it. Every field is checked where it is read: a
// value that sampling could not honour is an error here, not a surprise later.
#include "text/generation_config.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <string>
#include <utility>

#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>
#include <boost/json/value.hpp>

#include "request/request.h"
#include "text/text_files.h"

namespace sluice {
namespace {

constexpr std::size_t kConfigBytesMax = std::size_t{16} << 20;

// One JSON file and the name it has in errors.
struct ConfigFile {
  std::string path;
  boost::json::object object;

  // The field, or null when it is absent or null.
  const boost::json::value* find(std::string_view field) const {
    const boost::json::value* value = object.if_contains(field);
    return value != nullptr && !value->is_null() ? value : nullptr;
  }

  std::unexpected<Error> refuse(std::string_view field, const boost::json::value& value,
                                std::string_view want) const {
    return fail(ErrorCode::corrupt_data,
                path + ": " + std::string(field) + ": " + boost::json::serialize(value) +
                    ", want " + std::string(want),
                path);
  }
};

struct Bounds {
  double low;
  double high;
  std::string_view want;
};

Result<std::optional<float>> read_float(const ConfigFile& file, std::string_view field,
                                        const Bounds& bounds) {
  const boost::json::value* value = file.find(field);
  if (value == nullptr) {
    return std::optional<float>();
  }
  boost::system::error_code error;
  const auto number = value->to_number<double>(error);
  if (error || !std::isfinite(number) || number < bounds.low || number > bounds.high) {
    return file.refuse(field, *value, bounds.want);
  }
  return std::optional(static_cast<float>(number));
}

std::optional<std::int32_t> as_id(const boost::json::value& value) {
  const bool fits = value.is_int64() && value.get_int64() >= 0 &&
                    value.get_int64() <= std::numeric_limits<std::int32_t>::max();
  return fits ? std::optional(static_cast<std::int32_t>(value.get_int64())) : std::nullopt;
}

Result<std::optional<std::int32_t>> read_count(const ConfigFile& file, std::string_view field) {
  const boost::json::value* value = file.find(field);
  if (value == nullptr) {
    return std::optional<std::int32_t>();
  }
  const std::optional<std::int32_t> count = as_id(*value);
  if (!count) {
    return file.refuse(field, *value, "an integer of at least 0");
  }
  return count;
}

// eos_token_id: one id or a list of ids. Whether the field was there.
Result<bool> read_eos(const ConfigFile& file, std::vector<std::int32_t>* ids) {
  constexpr std::string_view kField = "eos_token_id";
  constexpr std::string_view kWant = "a token id or a list of token ids";
  const boost::json::value* value = file.find(kField);
  if (value == nullptr) {
    return false;
  }
  if (const boost::json::array* list = value->if_array()) {
    for (const boost::json::value& item : *list) {
      const std::optional<std::int32_t> id = as_id(item);
      if (!id) {
        return file.refuse(kField, *value, kWant);
      }
      ids->push_back(*id);
    }
    return true;
  }
  const std::optional<std::int32_t> id = as_id(*value);
  if (!id) {
    return file.refuse(kField, *value, kWant);
  }
  ids->push_back(*id);
  return true;
}

Result<std::optional<ConfigFile>> open(const std::filesystem::path& path) {
  std::optional<boost::json::object> object =
      SLUICE_TRY(read_optional_json_object(path, kConfigBytesMax));
  if (!object) {
    return std::optional<ConfigFile>();
  }
  return std::optional(ConfigFile{path.string(), std::move(*object)});
}

// eos_token_id of config.json, where it may be at the top or inside text_config.
Result<void> read_model_eos(const std::filesystem::path& path, std::vector<std::int32_t>* ids) {
  std::optional<ConfigFile> config = SLUICE_TRY(open(path));
  if (!config || SLUICE_TRY(read_eos(*config, ids))) {
    return {};
  }
  const boost::json::value* text = config->find("text_config");
  if (text != nullptr && text->is_object()) {
    SLUICE_TRY(read_eos(ConfigFile{config->path + ": text_config", text->get_object()}, ids));
  }
  return {};
}

Result<void> read_sampling(const ConfigFile& file, GenerationConfig* config) {
  if (const boost::json::value* value = file.find("do_sample")) {
    if (!value->is_bool()) {
      return file.refuse("do_sample", *value, "true or false");
    }
    config->do_sample = value->get_bool();
  }
  config->temperature =
      SLUICE_TRY(read_float(file, "temperature", {0.0, kTemperatureMax, "a number from 0 to 2"}));
  config->top_k = SLUICE_TRY(read_count(file, "top_k"));
  config->top_p = SLUICE_TRY(read_float(file, "top_p", {0, 1, "a number from 0 to 1"}));
  config->min_p = SLUICE_TRY(read_float(file, "min_p", {0, 1, "a number from 0 to 1"}));
  config->presence_penalty = SLUICE_TRY(
      read_float(file, "presence_penalty", {-kPenaltyMax, kPenaltyMax, "a number from -2 to 2"}));
  config->repetition_penalty = SLUICE_TRY(
      read_float(file, "repetition_penalty",
                 {std::numeric_limits<float>::min(), kPenaltyMax, "a number above 0, at most 2"}));
  return {};
}

}  // namespace

Result<GenerationConfig> load_generation_config(const std::filesystem::path& model_directory,
                                                const Tokenizer* tokenizer) {
  GenerationConfig config;
  std::vector<std::int32_t>& ids = config.eos_token_ids;
  const std::optional<ConfigFile> file =
      SLUICE_TRY(open(model_directory / "generation_config.json"));
  bool has_eos = false;
  if (file) {
    has_eos = SLUICE_TRY(read_eos(*file, &ids));
    SLUICE_TRY(read_sampling(*file, &config));
  }
  if (!has_eos) {
    SLUICE_TRY(read_model_eos(model_directory / "config.json", &ids));
  }
  if (tokenizer != nullptr && tokenizer->eos_token_id()) {
    ids.push_back(*tokenizer->eos_token_id());
  }
  std::sort(ids.begin(), ids.end());
  ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
  return config;
}

}  // namespace sluice
