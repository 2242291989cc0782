// One JSON object of config.json, read field by field. Every rejection names the file, the path of
// the field, the value seen and what was wanted. A JSON null counts as absent, as in the reference
// implementation. Private to weights/.
#pragma once

#include <boost/json/object.hpp>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace sluice {

struct ConfigIntegerRange {
  std::int64_t min = 1;
  std::int64_t max = 1;
};

struct ConfigNumberRange {
  double above = 0.0;  // exclusive
  double max = 0.0;    // inclusive
};

class ConfigObject {
 public:
  // `path` is "" for the document, else ends in a dot. The object must outlive this reader.
  ConfigObject(const boost::json::object& object, std::string file, std::string path)
      : object_(&object), file_(std::move(file)), path_(std::move(path)) {}

  const boost::json::object& object() const { return *object_; }
  const boost::json::value* find(std::string_view key) const;
  bool has(std::string_view key) const { return find(key) != nullptr; }

  // "FILE: text_config.hidden_act is "relu", want "silu"".
  std::unexpected<Error> reject(ErrorCode code, std::string_view key, std::string_view want) const;

  // "FILE: text_config.mrope_section " followed by the sentence.
  std::unexpected<Error> explain(ErrorCode code, std::string_view key,
                                 std::string_view sentence) const;

  // Absent: no value. Integers may be written as 64.0. Below the range: corrupt_data; above it:
  // unsupported.
  Result<std::optional<std::int64_t>> integer(std::string_view key, ConfigIntegerRange range) const;
  Result<std::optional<double>> number(std::string_view key, ConfigNumberRange range) const;
  Result<std::optional<bool>> boolean(std::string_view key) const;
  Result<std::optional<std::string>> text(std::string_view key) const;
  Result<std::optional<ConfigObject>> child(std::string_view key) const;
  // A list of integers; with scalar_too, a single integer reads as a list of one.
  Result<std::optional<std::vector<std::int64_t>>> integers(std::string_view key,
                                                            ConfigIntegerRange range,
                                                            bool scalar_too) const;

  // unsupported unless the text is absent or one of `accepted`.
  Result<void> require_text(std::string_view key, std::span<const std::string_view> accepted) const;
  // unsupported unless the flag is absent or `wanted`.
  Result<void> require_flag(std::string_view key, bool wanted) const;

 private:
  Result<std::int64_t> to_integer(const boost::json::value& value, std::string_view key,
                                  ConfigIntegerRange range) const;

  const boost::json::object* object_;
  std::string file_;
  std::string path_;
};

}  // namespace sluice
