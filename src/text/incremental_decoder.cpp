// UTF-8 with replacement, in pieces. Invalid bytes become one U+FFFD per maximal subpart (Unicode,
// table 3-7), exactly as Tokenizer::decode() of the whole sequence writes them.
#include "text/incremental_decoder.h"

#include <cstddef>
#include <string_view>
#include <utility>

namespace sluice {
namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";

// Bytes of the character that `lead` begins; 0 when it begins none.
std::size_t sequence_length(unsigned char lead) {
  if (lead < 0x80) {
    return 1;
  }
  if (lead >= 0xC2 && lead <= 0xDF) {
    return 2;
  }
  if (lead >= 0xE0 && lead <= 0xEF) {
    return 3;
  }
  return lead >= 0xF0 && lead <= 0xF4 ? 4 : 0;
}

// Whether `byte` may stand at `index` (1 to 3) of a character that begins with `lead`. The second
// byte has a narrower range after four leads: no overlong forms, no surrogates, nothing above
// 10FFFF.
bool continues(unsigned char lead, std::size_t index, unsigned char byte) {
  unsigned char low = 0x80;
  unsigned char high = 0xBF;
  if (index == 1) {
    low = lead == 0xE0 ? 0xA0 : lead == 0xF0 ? 0x90 : low;
    high = lead == 0xED ? 0x9F : lead == 0xF4 ? 0x8F : high;
  }
  return byte >= low && byte <= high;
}

}  // namespace

std::string IncrementalDecoder::append(std::int32_t token_id) {
  if (skip_special_tokens_ && tokenizer_->is_special(token_id)) {
    return {};
  }
  std::string bytes = std::exchange(pending_, {});
  bytes += tokenizer_->token_bytes(token_id);
  std::string text;
  text.reserve(bytes.size());
  std::size_t begin = 0;
  while (begin < bytes.size()) {
    const auto lead = static_cast<unsigned char>(bytes[begin]);
    const std::size_t length = sequence_length(lead);
    std::size_t size = 1;
    while (size < length && begin + size < bytes.size() &&
           continues(lead, size, static_cast<unsigned char>(bytes[begin + size]))) {
      ++size;
    }
    if (size == length) {
      text.append(bytes, begin, size);
    } else if (length != 0 && begin + size == bytes.size()) {
      pending_.assign(bytes, begin);
    } else {
      text += kReplacement;
    }
    begin += size;
  }
  return text;
}

std::string IncrementalDecoder::finish() {
  return std::exchange(pending_, {}).empty() ? std::string() : std::string(kReplacement);
}

}  // namespace sluice
