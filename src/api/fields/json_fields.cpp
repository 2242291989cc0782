#include "api/fields/json_fields.h"

#include <fmt/format.h>

#include <cmath>
#include <utility>

#include "api/fields/json_text.h"

namespace sluice {

namespace json = boost::json;

void FieldReport::fail(ApiErrorKind kind, std::string message, std::string param) {
  if (!error_) {
    error_ = ApiError{kind, std::move(message), std::move(param)};
  }
}

void FieldReport::ignore(std::string path) {
  constexpr std::size_t kIgnoredBytesMax = 4096;
  if (ignored_bytes_ < kIgnoredBytesMax) {
    ignored_bytes_ += path.size();
    ignored_.push_back(std::move(path));
  }
}

JsonFields::JsonFields(const json::object& object, std::string path, FieldReport& report)
    : object_(&object), path_(std::move(path)), report_(&report), asked_(object.size(), false) {}

const json::value* JsonFields::find(std::string_view key) {
  const auto* entry = object_->find(json::string_view(key.data(), key.size()));
  if (entry == object_->end()) {
    return nullptr;
  }
  asked_[static_cast<std::size_t>(entry - object_->begin())] = true;
  return entry->value().is_null() ? nullptr : &entry->value();
}

std::optional<std::string> JsonFields::string(std::string_view key) {
  const json::value* value = find(key);
  if (value == nullptr) {
    return std::nullopt;
  }
  if (!value->is_string()) {
    fail_type(key, "a string", *value);
    return std::nullopt;
  }
  return std::string(value->get_string());
}

std::optional<bool> JsonFields::boolean(std::string_view key) {
  const json::value* value = find(key);
  if (value == nullptr) {
    return std::nullopt;
  }
  if (!value->is_bool()) {
    fail_type(key, "a boolean", *value);
    return std::nullopt;
  }
  return value->get_bool();
}

std::optional<std::int64_t> JsonFields::integer(std::string_view key, IntegerRange range) {
  const json::value* value = find(key);
  if (value == nullptr) {
    return std::nullopt;
  }
  const auto integer = as_integer(*value);
  if (!integer) {
    fail_type(key, "an integer", *value);
    return std::nullopt;
  }
  if (*integer < range.min || *integer > range.max) {
    report_->fail(
        ApiErrorKind::invalid_value,
        fmt::format("{} is {}, want {} to {}", path_of(key), *integer, range.min, range.max),
        path_of(key));
    return std::nullopt;
  }
  return integer;
}

std::optional<double> JsonFields::number(std::string_view key, NumberRange range) {
  const json::value* value = find(key);
  if (value == nullptr) {
    return std::nullopt;
  }
  if (!value->is_number()) {
    fail_type(key, "a number", *value);
    return std::nullopt;
  }
  const double number = value->to_number<double>();
  const bool below = range.min_open ? number <= range.min : number < range.min;
  if (below || number > range.max || !std::isfinite(number)) {
    report_->fail(ApiErrorKind::invalid_value,
                  fmt::format("{} is {}, want {}{} to {}", path_of(key), number,
                              range.min_open ? "more than " : "", range.min, range.max),
                  path_of(key));
    return std::nullopt;
  }
  return number;
}

const json::array* JsonFields::array(std::string_view key) {
  const json::value* value = find(key);
  if (value == nullptr) {
    return nullptr;
  }
  if (!value->is_array()) {
    fail_type(key, "an array", *value);
    return nullptr;
  }
  return &value->get_array();
}

std::optional<JsonFields> JsonFields::object(std::string_view key) {
  const json::value* value = find(key);
  if (value == nullptr) {
    return std::nullopt;
  }
  if (!value->is_object()) {
    fail_type(key, "an object", *value);
    return std::nullopt;
  }
  return JsonFields(value->get_object(), path_of(key), *report_);
}

void JsonFields::reject(std::string_view key, std::string_view reason) {
  if (has(key)) {
    report_->fail(ApiErrorKind::unsupported_parameter,
                  fmt::format("{} is not supported: {}", path_of(key), reason), path_of(key));
  }
}

void JsonFields::ignore_rest() {
  std::size_t index = 0;
  for (const auto& entry : *object_) {
    if (!asked_[index] && !entry.value().is_null()) {
      report_->ignore(path_of(std::string_view(entry.key().data(), entry.key().size())));
    }
    ++index;
  }
}

std::string JsonFields::path_of(std::string_view key) const {
  return path_.empty() ? std::string(key) : fmt::format("{}.{}", path_, key);
}

void JsonFields::fail_type(std::string_view key, std::string_view want, const json::value& seen) {
  report_->fail(ApiErrorKind::invalid_type,
                fmt::format("{} is {}, want {}", path_of(key), json_type_name(seen), want),
                path_of(key));
}

std::string_view json_type_name(const json::value& value) {
  switch (value.kind()) {
    case json::kind::null:
      return "null";
    case json::kind::bool_:
      return "a boolean";
    case json::kind::int64:
    case json::kind::uint64:
    case json::kind::double_:
      return "a number";
    case json::kind::string:
      return "a string";
    case json::kind::array:
      return "an array";
    case json::kind::object:
      return "an object";
  }
  return "unknown";
}

std::optional<std::int64_t> as_integer(const json::value& value) {
  if (value.is_int64()) {
    return value.get_int64();
  }
  if (value.is_double()) {
    const double number = value.get_double();
    constexpr double kExactMax = 9007199254740992.0;  // 2^53: doubles beyond skip integers
    if (std::nearbyint(number) == number && std::abs(number) <= kExactMax) {
      return static_cast<std::int64_t>(number);
    }
  }
  return std::nullopt;
}

ApiResult<boost::json::object> parse_json_object(std::string text) {
  auto parsed = parse_json(std::move(text), kBodyJsonLimits);
  if (!parsed) {
    return std::unexpected(std::move(parsed).error());
  }
  if (!parsed->is_object()) {
    return api_fail(ApiErrorKind::invalid_type,
                    fmt::format("the body is {}, want an object", json_type_name(*parsed)));
  }
  return std::move(parsed->get_object());
}

ApiResult<std::vector<std::string>> read_body(std::string text, const ReadBody& read) {
  const auto object = parse_json_object(std::move(text));
  if (!object) {
    return std::unexpected(object.error());
  }
  return read_body(*object, read);
}

ApiResult<std::vector<std::string>> read_body(const json::object& object, const ReadBody& read) {
  FieldReport report;
  JsonFields body(object, "", report);
  read(body);
  body.ignore_rest();
  if (report.failed()) {
    return std::unexpected(report.error());
  }
  return report.take_ignored();
}

}  // namespace sluice
