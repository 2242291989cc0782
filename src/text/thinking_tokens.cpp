#include "text/thinking_tokens.h"

namespace sluice {
namespace {

// What the makers of the Qwen3 models put there when a budget is spent; the models know it from
// training. The blank line before the content is the chat template's.
constexpr std::string_view kClosing =
    "\n\nConsidering the limited time by the user, I have to give the solution based on the "
    "thinking directly now.\n</think>";
constexpr std::string_view kGap = "\n\n";

void add_overruns(std::int32_t id, std::string_view bytes, std::vector<TagOverrun>& overruns) {
  for (std::size_t before = 0; before < kThinkingCloseTag.size(); ++before) {
    const std::string_view rest = kThinkingCloseTag.substr(before);
    if (bytes.size() > rest.size() && bytes.starts_with(rest)) {
      overruns.push_back({.id = id, .tag_bytes_before = before});
    }
  }
}

}  // namespace

Result<ThinkingTokens> ThinkingTokens::of(const Tokenizer& tokenizer) {
  ThinkingTokens tokens;
  tokens.close_tag = tokenizer.token_id(kThinkingCloseTag);
  tokens.closing = SLUICE_TRY(tokenizer.encode(kClosing, ControlTokens::parse));
  tokens.gap = SLUICE_TRY(tokenizer.encode(kGap, ControlTokens::literal));
  const std::int32_t vocab_size = tokenizer.vocab_size();
  tokens.cut_characters.resize((static_cast<std::size_t>(vocab_size) + 31) / 32);
  for (std::int32_t id = 0; id < vocab_size; ++id) {
    const std::string_view bytes = tokenizer.token_bytes(id);
    add_overruns(id, bytes, tokens.tag_overruns);
    if (ends_inside_character(bytes)) {
      tokens.cut_characters[static_cast<std::size_t>(id) / 32] |= std::uint32_t{1} << (id % 32);
    }
  }
  return tokens;
}

bool ends_inside_character(std::string_view bytes) {
  // The lead byte of an unfinished character is one of the last three.
  for (std::size_t size = 1; size <= 3 && size <= bytes.size(); ++size) {
    const auto byte = static_cast<unsigned char>(bytes[bytes.size() - size]);
    if (byte < 0x80) {
      return false;
    }
    if (byte >= 0xC0) {
      const std::size_t length = byte >= 0xF0 ? 4 : byte >= 0xE0 ? 3 : 2;
      return size < length;
    }
  }
  return false;
}

}  // namespace sluice
