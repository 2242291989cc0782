#include "weights/strict_json.h"

#include <fmt/format.h>

#include <boost/json/basic_parser_impl.hpp>
#include <boost/json/error.hpp>
#include <boost/json/value_stack.hpp>
#include <exception>
#include <set>
#include <vector>

namespace sluice {
namespace {

namespace json = boost::json;

constexpr std::size_t kPrintableBytesMax = 120;

// Builds the document and watches the keys of every open object.
class DocumentHandler {
 public:
  static constexpr std::size_t max_object_size = static_cast<std::size_t>(-1);
  static constexpr std::size_t max_array_size = static_cast<std::size_t>(-1);
  static constexpr std::size_t max_key_size = static_cast<std::size_t>(-1);
  static constexpr std::size_t max_string_size = static_cast<std::size_t>(-1);

  json::value release() { return stack_.release(); }
  const std::string& repeated_key() const { return repeated_key_; }

  bool on_document_begin(json::error_code&) {
    stack_.reset();
    return true;
  }
  bool on_document_end(json::error_code&) { return true; }
  bool on_object_begin(json::error_code&) {
    open_objects_.emplace_back();
    return true;
  }
  bool on_object_end(std::size_t count, json::error_code&) {
    open_objects_.pop_back();
    stack_.push_object(count);
    return true;
  }
  bool on_array_begin(json::error_code&) { return true; }
  bool on_array_end(std::size_t count, json::error_code&) {
    stack_.push_array(count);
    return true;
  }
  bool on_key_part(json::string_view part, std::size_t, json::error_code&) {
    key_.append(part.data(), part.size());
    stack_.push_chars(part);
    return true;
  }
  bool on_key(json::string_view part, std::size_t, json::error_code& code) {
    key_.append(part.data(), part.size());
    stack_.push_key(part);
    if (!open_objects_.back().insert(key_).second) {
      repeated_key_ = key_;
      code = json::make_error_code(json::error::syntax);
      return false;
    }
    key_.clear();
    return true;
  }
  bool on_string_part(json::string_view part, std::size_t, json::error_code&) {
    stack_.push_chars(part);
    return true;
  }
  bool on_string(json::string_view part, std::size_t, json::error_code&) {
    stack_.push_string(part);
    return true;
  }
  bool on_number_part(json::string_view, json::error_code&) { return true; }
  bool on_int64(std::int64_t value, json::string_view, json::error_code&) {
    stack_.push_int64(value);
    return true;
  }
  bool on_uint64(std::uint64_t value, json::string_view, json::error_code&) {
    stack_.push_uint64(value);
    return true;
  }
  bool on_double(double value, json::string_view, json::error_code&) {
    stack_.push_double(value);
    return true;
  }
  bool on_bool(bool value, json::error_code&) {
    stack_.push_bool(value);
    return true;
  }
  bool on_null(json::error_code&) {
    stack_.push_null();
    return true;
  }
  bool on_comment_part(json::string_view, json::error_code&) { return true; }
  bool on_comment(json::string_view, json::error_code&) { return true; }

 private:
  json::value_stack stack_;
  std::vector<std::set<std::string>> open_objects_;
  std::string key_;
  std::string repeated_key_;
};

}  // namespace

Result<json::value> parse_strict_json(std::string_view text, std::string_view where) try {
  json::parse_options options;
  options.max_depth = kConfigDepthMax;
  json::basic_parser<DocumentHandler> parser(options);
  json::error_code code;
  const std::size_t consumed = parser.write_some(false, text.data(), text.size(), code);
  if (!parser.handler().repeated_key().empty()) {
    return fail(ErrorCode::corrupt_data,
                fmt::format("{}: key \"{}\" appears twice in one object", where,
                            printable(parser.handler().repeated_key())),
                std::string(where));
  }
  if (!code && consumed < text.size()) {
    code = json::make_error_code(json::error::extra_data);
  }
  if (code) {
    return fail(ErrorCode::corrupt_data,
                fmt::format("{}: not valid JSON: {} near byte {} of {} (nesting limit {})", where,
                            code.message(), consumed, text.size(), kConfigDepthMax),
                std::string(where));
  }
  return parser.handler().release();
} catch (const std::exception& error) {
  return fail(ErrorCode::resource_exhausted,
              fmt::format("{}: cannot hold this JSON document of {} bytes: {}", where, text.size(),
                          error.what()),
              std::string(where));
}

std::string printable(std::string_view text) {
  std::size_t end = text.size();
  if (end > kPrintableBytesMax) {
    end = kPrintableBytesMax;
    while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xc0U) == 0x80U) {
      --end;  // not inside a UTF-8 sequence
    }
  }
  std::string result;
  for (const char c : text.substr(0, end)) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte == 0x7f) {
      result += fmt::format("\\x{:02x}", static_cast<unsigned>(byte));
    } else {
      result += c;
    }
  }
  if (end < text.size()) {
    result += fmt::format("... ({} bytes)", text.size());
  }
  return result;
}

}  // namespace sluice
