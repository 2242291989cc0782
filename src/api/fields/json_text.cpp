// The one place of the HTTP side that runs Boost.JSON's parser. Its plain parse() rounds numbers
// only nearly (0.3 may come back as 0.30000000000000004), which would change prompts that quote
// tool schemas and arguments, so the handler below converts the text of a number itself.
#include "api/fields/json_text.h"

#include <boost/json/basic_parser_impl.hpp>
#include <boost/json/serialize.hpp>
#include <boost/json/value_stack.hpp>
#include <charconv>
#include <cstdint>
#include <exception>
#include <optional>

namespace sluice {
namespace {

namespace json = boost::json;

// Builds the value, and counts; only numbers differ from what boost::json::parse does.
class ValueHandler {
 public:
  static constexpr std::size_t max_object_size = json::object::max_size();
  static constexpr std::size_t max_array_size = json::array::max_size();
  static constexpr std::size_t max_key_size = json::string::max_size();
  static constexpr std::size_t max_string_size = json::string::max_size();
  using Text = json::string_view;
  using Code = json::error_code;

  json::value_stack stack;

  bool on_document_begin(Code&) { return true; }
  bool on_document_end(Code&) { return true; }
  bool on_object_begin(Code&) { return true; }
  bool on_object_end(std::size_t count, Code& failure) {
    stack.push_object(count);
    return count_part(failure);
  }
  bool on_array_begin(Code&) { return true; }
  bool on_array_end(std::size_t count, Code& failure) {
    stack.push_array(count);
    return count_part(failure);
  }
  bool on_key_part(Text part, std::size_t, Code&) {
    stack.push_chars(part);
    return true;
  }
  bool on_key(Text part, std::size_t, Code& failure) {
    stack.push_key(part);
    return count_part(failure);
  }
  bool on_string_part(Text part, std::size_t, Code&) {
    stack.push_chars(part);
    return true;
  }
  bool on_string(Text part, std::size_t, Code& failure) {
    stack.push_string(part);
    return count_part(failure);
  }
  bool on_number_part(Text part, Code&) {
    number_.append(part.data(), part.size());
    return true;
  }
  bool on_int64(std::int64_t value, Text, Code& failure) {
    number_.clear();
    stack.push_int64(value);
    return count_scalar(failure);
  }
  bool on_uint64(std::uint64_t value, Text, Code& failure) {
    number_.clear();
    stack.push_uint64(value);
    return count_scalar(failure);
  }
  bool on_double(double value, Text rest, Code& failure) {
    number_.append(rest.data(), rest.size());
    double exact = 0.0;
    const char* end = number_.data() + number_.size();
    const auto [used, problem] = std::from_chars(number_.data(), end, exact);
    stack.push_double(problem == std::errc() && used == end ? exact : value);
    number_.clear();
    return count_scalar(failure);
  }
  bool on_bool(bool value, Code& failure) {
    stack.push_bool(value);
    return count_scalar(failure);
  }
  bool on_null(Code& failure) {
    stack.push_null();
    return count_scalar(failure);
  }
  bool on_comment_part(Text, Code&) { return true; }
  bool on_comment(Text, Code&) { return true; }

  explicit ValueHandler(const JsonLimits& limits) : limits_(limits) {}

  bool has_too_many() const { return parts_ > limits_.parts_max || scalars_ > limits_.scalars_max; }

 private:
  bool count_part(Code& failure) { return check(++parts_ <= limits_.parts_max, failure); }
  bool count_scalar(Code& failure) { return check(++scalars_ <= limits_.scalars_max, failure); }
  static bool check(bool fits, Code& failure) {
    if (!fits) {
      failure = json::error::array_too_large;
    }
    return fits;
  }

  JsonLimits limits_;
  std::string number_;
  std::size_t parts_ = 0;
  std::size_t scalars_ = 0;
};

// The value of four hexadecimal digits at `text`, or nothing.
std::optional<unsigned> four_hex_digits(std::string_view text) {
  if (text.size() < 4) {
    return std::nullopt;
  }
  unsigned value = 0;
  const auto [end, failure] = std::from_chars(text.data(), text.data() + 4, value, 16);
  if (failure != std::errc() || end != text.data() + 4) {
    return std::nullopt;
  }
  return value;
}

// The code unit of an escape "\uXXXX" that starts at `at`, or nothing.
std::optional<unsigned> escape_at(std::string_view text, std::size_t at) {
  if (at + 6 > text.size() || text[at] != '\\' || text[at + 1] != 'u') {
    return std::nullopt;
  }
  return four_hex_digits(text.substr(at + 2));
}

bool is_leading(unsigned unit) {
  return unit >= 0xD800 && unit < 0xDC00;
}
bool is_trailing(unsigned unit) {
  return unit >= 0xDC00 && unit < 0xE000;
}

// Length of the UTF-8 character at `at`, or 0 when the bytes there are not one.
std::size_t utf8_length(std::string_view bytes, std::size_t at) {
  const auto byte = [&](std::size_t index) { return static_cast<unsigned char>(bytes[index]); };
  const unsigned char first = byte(at);
  if (first < 0x80) {
    return 1;
  }
  const std::size_t length = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : 2;
  if (first < 0xC2 || first > 0xF4 || at + length > bytes.size()) {
    return 0;
  }
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(at + i) & 0xC0) != 0x80) {
      return 0;
    }
  }
  const unsigned char second = byte(at + 1);
  const bool overlong = (first == 0xE0 && second < 0xA0) || (first == 0xF0 && second < 0x90);
  const bool surrogate = first == 0xED && second >= 0xA0;
  const bool too_large = first == 0xF4 && second >= 0x90;
  return overlong || surrogate || too_large ? 0 : length;
}

}  // namespace

ApiResult<json::value> parse_json(std::string text, const JsonLimits& limits) {
  constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
  const std::size_t start = text.starts_with(kByteOrderMark) ? kByteOrderMark.size() : 0;
  repair_surrogate_escapes(text);
  try {
    json::parse_options options;
    options.max_depth = kJsonDepthMax;
    json::basic_parser<ValueHandler> parser(options, limits);
    json::error_code failure;
    const std::size_t size = text.size() - start;
    const std::size_t used = parser.write_some(false, text.data() + start, size, failure);
    if (!failure && used < size) {
      failure = json::error::extra_data;
    }
    if (parser.handler().has_too_many()) {
      return api_fail(ApiErrorKind::request_too_large,
                      "the JSON has more than " + std::to_string(limits.parts_max) +
                          " strings, keys, arrays and objects, or more than " +
                          std::to_string(limits.scalars_max) + " numbers");
    }
    if (failure) {
      return api_fail(
          ApiErrorKind::invalid_json,
          "not valid JSON at byte " + std::to_string(start + used) + ": " + failure.message());
    }
    return parser.handler().stack.release();
  } catch (const std::exception& error) {
    return api_fail(ApiErrorKind::invalid_json, std::string("not valid JSON: ") + error.what());
  }
}

std::string to_json(const json::value& value) {
  return json::serialize(value);
}

void repair_surrogate_escapes(std::string& text) {
  for (std::size_t at = text.find('\\'); at != std::string::npos; at = text.find('\\', at)) {
    const auto unit = escape_at(text, at);
    if (!unit) {
      at += 2;  // a backslash and what it escapes
      continue;
    }
    const auto next = is_leading(*unit) ? escape_at(text, at + 6) : std::nullopt;
    if (next && is_trailing(*next)) {
      at += 12;
      continue;
    }
    if (is_leading(*unit) || is_trailing(*unit)) {
      text.replace(at + 2, 4, "fffd");
    }
    at += 6;
  }
}

std::string replace_invalid_utf8(std::string_view bytes) {
  std::string text;
  for (std::size_t at = 0; at < bytes.size();) {
    const std::size_t length = utf8_length(bytes, at);
    if (length == 0) {
      text += "\xEF\xBF\xBD";
      ++at;
    } else {
      text.append(bytes, at, length);
      at += length;
    }
  }
  return text;
}

}  // namespace sluice
