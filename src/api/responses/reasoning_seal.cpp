// A sealed text is the prefix and the base64 (RFC 4648, URL alphabet, no padding) of its bytes.
#include "api/responses/reasoning_seal.h"

#include <cstdint>

#include "api/fields/json_text.h"

namespace sluice {
namespace {

constexpr std::string_view kPrefix = "sluice1.";
constexpr std::string_view kAlphabet =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
constexpr unsigned kDigitBits = 6;
constexpr unsigned kByteBits = 8;

}  // namespace

std::string seal_reasoning(std::string_view text) {
  std::string sealed(kPrefix);
  std::uint32_t bits = 0;
  unsigned count = 0;  // of valid low bits
  for (const char c : text) {
    bits = (bits << kByteBits) | static_cast<unsigned char>(c);
    for (count += kByteBits; count >= kDigitBits; count -= kDigitBits) {
      sealed += kAlphabet[(bits >> (count - kDigitBits)) & 63U];
    }
  }
  if (count > 0) {
    sealed += kAlphabet[(bits << (kDigitBits - count)) & 63U];
  }
  return sealed;
}

std::optional<std::string> unseal_reasoning(std::string_view sealed) {
  if (!sealed.starts_with(kPrefix)) {
    return std::nullopt;
  }
  std::string text;
  std::uint32_t bits = 0;
  unsigned count = 0;
  for (const char c : sealed.substr(kPrefix.size())) {
    const std::size_t digit = kAlphabet.find(c);
    if (digit == std::string_view::npos) {
      return std::nullopt;
    }
    bits = (bits << kDigitBits) | static_cast<std::uint32_t>(digit);
    count += kDigitBits;
    if (count >= kByteBits) {
      count -= kByteBits;
      text += static_cast<char>((bits >> count) & 255U);
    }
  }
  return replace_invalid_utf8(text);  // it may have been changed on the way
}

}  // namespace sluice
