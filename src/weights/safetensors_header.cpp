#include "weights/safetensors_header.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <boost/json/basic_parser_impl.hpp>
#include <boost/json/error.hpp>
#include <boost/json/serialize.hpp>
#include <boost/json/string.hpp>
#include <cstring>
#include <exception>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include "base/checked_math.h"
#include "weights/strict_json.h"

namespace sluice {
namespace {

namespace json = boost::json;

constexpr std::size_t kHeaderDepthMax = 4;  // header > tensor > shape, and one to report on
constexpr std::size_t kAxesMax = 16;
constexpr std::size_t kNameBytesMax = 1024;
constexpr std::size_t kDataAlignment = 64;

// Reads the header event by event: memory stays in proportion to the tensors it names, whatever
// else a hostile header holds.
class HeaderHandler {
 public:
  static constexpr std::size_t max_object_size = static_cast<std::size_t>(-1);
  static constexpr std::size_t max_array_size = static_cast<std::size_t>(-1);
  static constexpr std::size_t max_key_size = static_cast<std::size_t>(-1);
  static constexpr std::size_t max_string_size = static_cast<std::size_t>(-1);

  SafetensorsHeader& header() { return header_; }
  const std::optional<Error>& error() const { return error_; }

  bool on_document_begin(json::error_code&) { return true; }
  bool on_document_end(json::error_code&) { return true; }

  bool on_object_begin(json::error_code& code) {
    switch (place_) {
      case Place::document:
        place_ = Place::header;
        return true;
      case Place::header:
        place_ = name_ == kMetadata ? Place::metadata : Place::tensor;
        entry_ = {};
        offsets_ = {};
        offset_count_ = 0;
        seen_dtype_ = seen_shape_ = seen_offsets_ = false;
        return true;
      default:
        return reject(code, "an object where none belongs");
    }
  }
  bool on_object_end(std::size_t, json::error_code& code) {
    switch (place_) {
      case Place::tensor:
        place_ = Place::header;
        return finish_tensor(code);
      case Place::metadata:
        place_ = Place::header;
        return true;
      default:
        place_ = Place::document;
        return true;
    }
  }
  bool on_array_begin(json::error_code& code) {
    if (place_ == Place::tensor && key_ == "shape") {
      place_ = Place::shape;
      return true;
    }
    if (place_ == Place::tensor && key_ == "data_offsets") {
      place_ = Place::offsets;
      return true;
    }
    return reject(code, "a list where none belongs");
  }
  bool on_array_end(std::size_t, json::error_code& code) {
    const bool complete = place_ == Place::shape || offset_count_ == 2;
    place_ = Place::tensor;
    return complete || reject(code, "data_offsets must have two entries");
  }
  bool on_key_part(json::string_view part, std::size_t, json::error_code& code) {
    return collect(part, code);
  }
  bool on_key(json::string_view part, std::size_t, json::error_code& code) {
    if (!collect(part, code)) {
      return false;
    }
    std::string key = std::exchange(text_, {});
    if (place_ == Place::header) {
      name_ = std::move(key);
      return begin_entry(code);
    }
    key_ = std::move(key);
    return place_ != Place::tensor || check_tensor_key(code);
  }
  bool on_string_part(json::string_view part, std::size_t, json::error_code& code) {
    return place_ == Place::metadata || collect(part, code);
  }
  bool on_string(json::string_view part, std::size_t, json::error_code& code) {
    if (place_ == Place::metadata) {
      return true;
    }
    if (place_ != Place::tensor || key_ != "dtype") {
      return reject(code, "a string where none belongs");
    }
    if (!collect(part, code)) {
      return false;
    }
    const std::string spelling = std::exchange(text_, {});
    const std::optional<DType> dtype = dtype_from_name(spelling);
    if (!dtype) {
      return reject(code,
                    fmt::format("dtype \"{}\" is not one this build knows", printable(spelling)),
                    ErrorCode::unsupported);
    }
    entry_.dtype = *dtype;
    return true;
  }
  bool on_number_part(json::string_view, json::error_code&) { return true; }
  bool on_int64(std::int64_t value, json::string_view, json::error_code& code) {
    if (value < 0) {
      return reject(code, fmt::format("{} holds {}, want a count >= 0", printable(key_), value));
    }
    return on_count(static_cast<std::uint64_t>(value), code);
  }
  bool on_uint64(std::uint64_t value, json::string_view, json::error_code& code) {
    return on_count(value, code);
  }
  bool on_double(double value, json::string_view, json::error_code& code) {
    return reject(code, fmt::format("{} holds {}, want an integer", printable(key_), value));
  }
  bool on_bool(bool, json::error_code& code) { return reject(code, "a bool where none belongs"); }
  bool on_null(json::error_code& code) { return reject(code, "a null where none belongs"); }
  bool on_comment_part(json::string_view, json::error_code&) { return true; }
  bool on_comment(json::string_view, json::error_code&) { return true; }

 private:
  enum class Place { document, header, metadata, tensor, shape, offsets };
  static constexpr std::string_view kMetadata = "__metadata__";

  bool reject(json::error_code& code, std::string reason,
              ErrorCode kind = ErrorCode::corrupt_data) {
    const std::string subject =
        name_.empty() ? "the header" : fmt::format("tensor {}", printable(name_));
    error_ = Error{kind, fmt::format("{}: {}", subject, reason), {}};
    code = json::make_error_code(json::error::syntax);
    return false;
  }

  bool collect(json::string_view part, json::error_code& code) {
    if (text_.size() + part.size() > kNameBytesMax && place_ != Place::metadata) {
      text_.append(part.data(), std::min(part.size(), kNameBytesMax));
      return reject(code, fmt::format("text \"{}\" is longer than {} bytes", printable(text_),
                                      kNameBytesMax));
    }
    if (place_ != Place::metadata) {
      text_.append(part.data(), part.size());
    }
    return true;
  }

  bool begin_entry(json::error_code& code) {
    if (name_ == kMetadata) {
      return !std::exchange(seen_metadata_, true) || reject(code, "appears twice");
    }
    if (header_.contains(name_)) {
      return reject(code, "appears twice");
    }
    return true;
  }

  bool check_tensor_key(json::error_code& code) {
    bool* seen = key_ == "dtype"          ? &seen_dtype_
                 : key_ == "shape"        ? &seen_shape_
                 : key_ == "data_offsets" ? &seen_offsets_
                                          : nullptr;
    if (seen == nullptr) {
      return reject(code, fmt::format("unknown key \"{}\"", printable(key_)));
    }
    if (std::exchange(*seen, true)) {
      return reject(code, fmt::format("key \"{}\" appears twice", key_));
    }
    return true;
  }

  bool on_count(std::uint64_t value, json::error_code& code) {
    constexpr auto kCountMax = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
    if (value > kCountMax) {
      return reject(code,
                    fmt::format("{} holds {}, the limit is {}", printable(key_), value, kCountMax));
    }
    if (place_ == Place::shape) {
      entry_.shape.push_back(static_cast<std::int64_t>(value));
      return entry_.shape.size() <= kAxesMax ||
             reject(code, fmt::format("more than {} axes", kAxesMax));
    }
    if (place_ == Place::offsets) {
      if (offset_count_ == offsets_.size()) {
        return reject(code, "data_offsets must have two entries");
      }
      offsets_[offset_count_++] = value;
      return true;
    }
    return reject(code, "a number where none belongs");
  }

  bool finish_tensor(json::error_code& code) {
    for (const auto& [seen, key] :
         {std::pair{seen_dtype_, "dtype"}, std::pair{seen_shape_, "shape"},
          std::pair{seen_offsets_, "data_offsets"}}) {
      if (!seen) {
        return reject(code, fmt::format("{} is missing", key));
      }
    }
    std::optional<std::int64_t> bytes = static_cast<std::int64_t>(dtype_bytes(entry_.dtype));
    for (const std::int64_t axis : entry_.shape) {
      bytes = bytes ? checked_mul(*bytes, axis) : bytes;
    }
    if (!bytes) {
      return reject(code, fmt::format("shape {} overflows", to_string(entry_.shape)));
    }
    entry_.begin = offsets_[0];
    entry_.end = offsets_[1];
    if (entry_.begin > entry_.end ||
        entry_.end - entry_.begin != static_cast<std::uint64_t>(*bytes)) {
      return reject(
          code, fmt::format("data_offsets [{}, {}], want {} bytes for {} {}", entry_.begin,
                            entry_.end, *bytes, dtype_name(entry_.dtype), to_string(entry_.shape)));
    }
    header_.emplace(name_, std::move(entry_));
    return true;
  }

  SafetensorsHeader header_;
  std::optional<Error> error_;
  Place place_ = Place::document;
  std::string text_;  // of the string being read
  std::string name_;  // last key of the header
  std::string key_;   // last key of an inner object
  HeaderEntry entry_;
  std::array<std::uint64_t, 2> offsets_{};
  std::size_t offset_count_ = 0;
  bool seen_metadata_ = false;
  bool seen_dtype_ = false;
  bool seen_shape_ = false;
  bool seen_offsets_ = false;
};

// The tensors in order of their bytes must follow one another from 0 to data_bytes.
Result<void> check_coverage(const SafetensorsHeader& header, std::uint64_t data_bytes,
                            std::string_view where) {
  std::vector<const SafetensorsHeader::value_type*> order;
  order.reserve(header.size());
  for (const auto& item : header) {
    order.push_back(&item);
  }
  std::sort(order.begin(), order.end(), [](const auto* a, const auto* b) {
    return std::pair{a->second.begin, a->second.end} < std::pair{b->second.begin, b->second.end};
  });
  std::uint64_t cursor = 0;
  for (const auto* item : order) {
    const HeaderEntry& entry = item->second;
    const auto reject = [&](std::string_view reason) {
      return fail(ErrorCode::corrupt_data,
                  fmt::format("{}: tensor {}: data_offsets [{}, {}] {}", where,
                              printable(item->first), entry.begin, entry.end, reason),
                  std::string(where));
    };
    if (entry.end > data_bytes) {
      return reject(fmt::format("end past the data of {} bytes (truncated file?)", data_bytes));
    }
    if (entry.begin < cursor) {
      return reject(fmt::format("overlap another tensor that ends at {}", cursor));
    }
    if (entry.begin > cursor) {
      return reject(fmt::format("leave a hole after byte {}", cursor));
    }
    cursor = entry.end;
  }
  if (cursor != data_bytes) {
    return fail(ErrorCode::corrupt_data,
                fmt::format("{}: {} bytes of data, the tensors of the header end at {}", where,
                            data_bytes, cursor),
                std::string(where));
  }
  return {};
}

}  // namespace

Result<SafetensorsHeader> parse_safetensors_header(std::string_view text, std::uint64_t data_bytes,
                                                   std::string_view where) try {
  json::parse_options options;
  options.max_depth = kHeaderDepthMax;
  json::basic_parser<HeaderHandler> parser(options);
  json::error_code code;
  const std::size_t consumed = parser.write_some(false, text.data(), text.size(), code);
  HeaderHandler& handler = parser.handler();
  if (handler.error()) {
    return fail(handler.error()->code, fmt::format("{}: {}", where, handler.error()->message),
                std::string(where));
  }
  if (!code && consumed < text.size()) {
    code = json::make_error_code(json::error::extra_data);
  }
  if (code) {
    return fail(ErrorCode::corrupt_data,
                fmt::format("{}: the header is not valid JSON: {} near its byte {} of {}", where,
                            code.message(), consumed, text.size()),
                std::string(where));
  }
  SLUICE_TRY(check_coverage(handler.header(), data_bytes, where));
  return std::move(handler.header());
} catch (const std::exception& error) {
  return fail(
      ErrorCode::resource_exhausted,
      fmt::format("{}: cannot hold a header of {} bytes: {}", where, text.size(), error.what()),
      std::string(where));
}

Result<std::string> make_safetensors_header(const SafetensorsHeader& header) try {
  static_assert(std::endian::native == std::endian::little);
  std::string text = "{";
  std::uint64_t data_bytes = 0;
  for (const auto& [name, entry] : header) {
    text += fmt::format(R"({}{}:{{"dtype":"{}","shape":{},"data_offsets":[{},{}]}})",
                        text.size() > 1 ? "," : "", json::serialize(json::string(name)),
                        dtype_name(entry.dtype), to_string(entry.shape), entry.begin, entry.end);
    data_bytes = std::max(data_bytes, entry.end);
  }
  text += "}";
  const std::size_t head = sizeof(std::uint64_t);
  text.resize(round_up(head + text.size(), kDataAlignment) - head, ' ');
  // What we write we can read: the parser is the judge of names, shapes and offsets.
  Result<SafetensorsHeader> read_back = parse_safetensors_header(text, data_bytes, "new file");
  if (!read_back) {
    return fail(ErrorCode::invalid_argument, read_back.error().message);
  }
  const std::uint64_t size = text.size();
  std::string result(head, '\0');
  std::memcpy(result.data(), &size, head);
  return result + text;
} catch (const std::exception& error) {
  return fail(ErrorCode::resource_exhausted, fmt::format("new header: {}", error.what()));
}

}  // namespace sluice
