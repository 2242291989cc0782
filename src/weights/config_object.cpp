#include "weights/config_object.h"

#include <fmt/format.h>

#include <boost/json/serialize.hpp>
#include <boost/json/value.hpp>
#include <cmath>

#include "weights/strict_json.h"

namespace sluice {
namespace {

namespace json = boost::json;

constexpr double kExactDoubleMax = 9007199254740992.0;  // 2^53: integers up to here are exact
constexpr std::size_t kListLengthMax = 65536;

// The value of a JSON number that is a whole number, whichever way it is written.
std::optional<std::int64_t> whole_number(const json::value& value) {
  if (const std::int64_t* integer = value.if_int64()) {
    return *integer;
  }
  if (const double* number = value.if_double()) {
    if (std::abs(*number) <= kExactDoubleMax && std::trunc(*number) == *number) {
      return static_cast<std::int64_t>(*number);
    }
  }
  return std::nullopt;
}

}  // namespace

const json::value* ConfigObject::find(std::string_view key) const {
  const json::value* value = object_->if_contains(json::string_view(key.data(), key.size()));
  return value == nullptr || value->is_null() ? nullptr : value;
}

std::unexpected<Error> ConfigObject::reject(ErrorCode code, std::string_view key,
                                            std::string_view want) const {
  const json::value* value = find(key);
  const std::string seen =
      value == nullptr ? "is missing" : "is " + printable(json::serialize(*value));
  return explain(code, key, fmt::format("{}, want {}", seen, want));
}

std::unexpected<Error> ConfigObject::explain(ErrorCode code, std::string_view key,
                                             std::string_view sentence) const {
  const std::string field = path_ + std::string(key);
  return fail(code, fmt::format("{}: {} {}", file_, printable(field), sentence), field);
}

Result<std::int64_t> ConfigObject::to_integer(const json::value& value, std::string_view key,
                                              ConfigIntegerRange range) const {
  const std::optional<std::int64_t> integer = whole_number(value);
  const std::string want = fmt::format("an integer from {} to {}", range.min, range.max);
  if (!integer) {
    return reject(ErrorCode::corrupt_data, key, want);
  }
  if (*integer < range.min) {
    return reject(ErrorCode::corrupt_data, key, want);
  }
  if (*integer > range.max) {
    return reject(ErrorCode::unsupported, key, want);
  }
  return *integer;
}

Result<std::optional<std::int64_t>> ConfigObject::integer(std::string_view key,
                                                          ConfigIntegerRange range) const {
  const json::value* value = find(key);
  if (value == nullptr) {
    return std::nullopt;
  }
  return SLUICE_TRY(to_integer(*value, key, range));
}

Result<std::optional<double>> ConfigObject::number(std::string_view key,
                                                   ConfigNumberRange range) const {
  const json::value* value = find(key);
  if (value == nullptr) {
    return std::nullopt;
  }
  const std::string want = fmt::format("a number above {} and at most {}", range.above, range.max);
  if (!value->is_number()) {
    return reject(ErrorCode::corrupt_data, key, want);
  }
  json::error_code code;
  const auto number = value->to_number<double>(code);
  if (code || !std::isfinite(number) || number <= range.above || number > range.max) {
    return reject(ErrorCode::corrupt_data, key, want);
  }
  return number;
}

Result<std::optional<bool>> ConfigObject::boolean(std::string_view key) const {
  const json::value* value = find(key);
  if (value == nullptr) {
    return std::nullopt;
  }
  if (!value->is_bool()) {
    return reject(ErrorCode::corrupt_data, key, "true or false");
  }
  return value->get_bool();
}

Result<std::optional<std::string>> ConfigObject::text(std::string_view key) const {
  const json::value* value = find(key);
  if (value == nullptr) {
    return std::nullopt;
  }
  if (!value->is_string()) {
    return reject(ErrorCode::corrupt_data, key, "a string");
  }
  const json::string& text = value->get_string();
  return std::string(text.data(), text.size());
}

Result<std::optional<ConfigObject>> ConfigObject::child(std::string_view key) const {
  const json::value* value = find(key);
  if (value == nullptr) {
    return std::nullopt;
  }
  if (!value->is_object()) {
    return reject(ErrorCode::corrupt_data, key, "an object");
  }
  return ConfigObject(value->get_object(), file_, path_ + std::string(key) + ".");
}

Result<std::optional<std::vector<std::int64_t>>> ConfigObject::integers(std::string_view key,
                                                                        ConfigIntegerRange range,
                                                                        bool scalar_too) const {
  const json::value* value = find(key);
  if (value == nullptr) {
    return std::nullopt;
  }
  std::vector<std::int64_t> result;
  if (const json::array* list = value->if_array()) {
    if (list->size() > kListLengthMax) {
      return reject(ErrorCode::unsupported, key,
                    fmt::format("a list of at most {} integers", kListLengthMax));
    }
    for (const json::value& item : *list) {
      result.push_back(SLUICE_TRY(to_integer(item, key, range)));
    }
  } else if (scalar_too) {
    result.push_back(SLUICE_TRY(to_integer(*value, key, range)));
  } else {
    return reject(ErrorCode::corrupt_data, key, "a list of integers");
  }
  return result;
}

Result<void> ConfigObject::require_text(std::string_view key,
                                        std::span<const std::string_view> accepted) const {
  const std::optional<std::string> value = SLUICE_TRY(text(key));
  if (!value) {
    return {};
  }
  std::string want;
  for (const std::string_view candidate : accepted) {
    if (*value == candidate) {
      return {};
    }
    want += fmt::format("{}\"{}\"", want.empty() ? "" : " or ", candidate);
  }
  return reject(ErrorCode::unsupported, key, want);
}

Result<void> ConfigObject::require_flag(std::string_view key, bool wanted) const {
  if (SLUICE_TRY(boolean(key)).value_or(wanted) != wanted) {
    return reject(ErrorCode::unsupported, key, wanted ? "true" : "false");
  }
  return {};
}

}  // namespace sluice
