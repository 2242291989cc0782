#include "media/data_uri.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>

namespace sluice {
namespace {

constexpr std::string_view kScheme = "data:";
constexpr std::size_t kHeaderBytesMax = 256;  // between "data:" and the comma
constexpr std::size_t kSchemeBytesMax = 16;   // of what is told from base64
constexpr std::size_t kPathBytesMax = 4096;

constexpr std::uint8_t kPadding = 64;
constexpr std::uint8_t kSpace = 65;
constexpr std::uint8_t kNone = 66;

constexpr std::array<std::uint8_t, 256> make_values() {
  std::array<std::uint8_t, 256> values{};
  values.fill(kNone);
  std::uint8_t next = 0;
  for (const char c :
       std::string_view("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789")) {
    values[static_cast<unsigned char>(c)] = next++;
  }
  values['+'] = values['-'] = 62;
  values['/'] = values['_'] = 63;
  values['='] = kPadding;
  values[' '] = values['\t'] = values['\r'] = values['\n'] = kSpace;
  return values;
}
constexpr std::array<std::uint8_t, 256> kValues = make_values();

char lower(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

std::string lower(std::string_view text) {
  std::string result(text);
  std::ranges::transform(result, result.begin(), [](char c) { return lower(c); });
  return result;
}

std::optional<std::uint8_t> hex_value(char c) {
  const char digit = lower(c);
  if (digit >= '0' && digit <= '9') {
    return static_cast<std::uint8_t>(digit - '0');
  }
  if (digit >= 'a' && digit <= 'f') {
    return static_cast<std::uint8_t>(digit - 'a' + 10);
  }
  return std::nullopt;
}

// The base64 value of the character at `at`, and how many characters it took.
struct Unit {
  std::uint8_t value = kNone;
  std::size_t length = 1;
};

Unit unit_at(std::string_view text, std::size_t at) {
  if (text[at] == '%' && text.size() - at >= 3) {
    const std::optional<std::uint8_t> high = hex_value(text[at + 1]);
    const std::optional<std::uint8_t> low = hex_value(text[at + 2]);
    if (high && low) {
      return {.value = kValues[*high * 16U + *low], .length = 3};
    }
  }
  return {.value = kValues[static_cast<unsigned char>(text[at])], .length = 1};
}

// Four characters make three bytes; characters are pushed until the text or the group ends.
class Groups {
 public:
  void push(std::uint8_t value) {
    bits_ = (bits_ << 6U) | value;
    if (++count_ == 4) {
      for (const unsigned shift : {16U, 8U, 0U}) {
        bytes_.push_back(static_cast<std::byte>((bits_ >> shift) & 0xffU));
      }
      bits_ = count_ = 0;
    }
  }

  // Why the text may not end here with so many '='; empty when it may.
  std::string_view finish(std::size_t paddings) {
    if (count_ == 1) {
      return "its last group has a single character";
    }
    if (paddings != 0 && paddings != (4 - count_) % 4) {
      return "it has the wrong number of '=' at its end";
    }
    if (count_ == 2) {
      bytes_.push_back(static_cast<std::byte>((bits_ >> 4U) & 0xffU));
    } else if (count_ == 3) {
      bytes_.push_back(static_cast<std::byte>((bits_ >> 10U) & 0xffU));
      bytes_.push_back(static_cast<std::byte>((bits_ >> 2U) & 0xffU));
    }
    return {};
  }

  std::vector<std::byte>& bytes() { return bytes_; }

 private:
  std::vector<std::byte> bytes_;
  std::uint32_t bits_ = 0;
  unsigned count_ = 0;
};

std::string shown(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return byte > 0x20 && byte < 0x7f ? fmt::format("'{}'", c) : fmt::format("byte {:#04x}", byte);
}

}  // namespace

bool is_data_uri(std::string_view text) {
  return text.size() >= kScheme.size() && lower(text.substr(0, kScheme.size())) == kScheme;
}

Result<std::vector<std::byte>> decode_base64(std::string_view text, std::size_t bytes_max) {
  Groups groups;
  groups.bytes().reserve(std::min(bytes_max, text.size() / 4 * 3 + 3));
  std::size_t paddings = 0;
  for (std::size_t at = 0; at < text.size();) {
    const Unit unit = unit_at(text, at);
    if (unit.value == kNone || (unit.value < kPadding && paddings > 0)) {
      return fail(ErrorCode::invalid_argument,
                  fmt::format("not base64: {} at character {} of {}{}", shown(text[at]), at,
                              text.size(), paddings > 0 ? ", after '='" : ""));
    }
    if (unit.value == kPadding) {
      ++paddings;
    } else if (unit.value < kPadding) {
      groups.push(unit.value);
    }
    if (groups.bytes().size() > bytes_max) {
      return fail(ErrorCode::resource_exhausted,
                  fmt::format("base64 of more than {} bytes, the limit", bytes_max));
    }
    at += unit.length;
  }
  if (const std::string_view problem = groups.finish(paddings); !problem.empty()) {
    return fail(
        ErrorCode::invalid_argument,
        fmt::format("not base64: {} ({} characters, perhaps cut off)", problem, text.size()));
  }
  if (groups.bytes().size() > bytes_max) {
    return fail(ErrorCode::resource_exhausted,
                fmt::format("base64 of more than {} bytes, the limit", bytes_max));
  }
  return std::move(groups.bytes());
}

Result<EmbeddedMedia> read_embedded_media(std::string_view text, std::size_t bytes_max) {
  EmbeddedMedia media;
  if (is_data_uri(text)) {
    text.remove_prefix(kScheme.size());
    const std::size_t comma = text.substr(0, kHeaderBytesMax).find(',');
    if (comma == std::string_view::npos) {
      return fail(ErrorCode::invalid_argument,
                  fmt::format("data URI without a comma in its first {} characters, want "
                              "data:image/png;base64,...",
                              kHeaderBytesMax));
    }
    const std::string header = lower(text.substr(0, comma));
    constexpr std::string_view kBase64 = ";base64";
    if (!header.ends_with(kBase64)) {
      return fail(ErrorCode::unsupported,
                  "data URI that is not base64, want data:image/png;base64,...");
    }
    media.declared_type = header.substr(0, header.find(';'));
    text.remove_prefix(comma + 1);
  } else if (text.substr(0, kSchemeBytesMax).contains(':')) {
    return fail(ErrorCode::invalid_argument,
                "a URL of another kind, want data:image/png;base64,..., http:, https: or file:");
  } else if (text.starts_with('/') && text.size() < kPathBytesMax && text.contains('.')) {
    return fail(ErrorCode::invalid_argument,
                "neither base64 nor a URL, want data:image/png;base64,... or file:///...");
  }
  media.bytes = SLUICE_TRY(decode_base64(text, bytes_max));
  if (media.bytes.empty()) {
    return fail(ErrorCode::invalid_argument, "no bytes in the base64 data");
  }
  return media;
}

}  // namespace sluice
