// How reasoning ends, in tokens: the tag itself, and what is said in the model's place when its
// budget is spent.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "text/tokenizer.h"

namespace sluice {

// Ends the reasoning, whether as one token or spelled in several.
inline constexpr std::string_view kThinkingCloseTag = "</think>";

// A token that, where the first `tag_bytes_before` bytes of the tag were said, completes the tag
// and goes on: what it says beyond would be content.
struct TagOverrun {
  std::int32_t id = 0;
  std::size_t tag_bytes_before = 0;
};

struct ThinkingTokens {
  // Errors: those of Tokenizer::encode().
  static Result<ThinkingTokens> of(const Tokenizer& tokenizer);

  std::optional<std::int32_t> close_tag;  // `</think>`, where it is one token
  std::vector<std::int32_t> closing;      // the closing sentence and the tag
  std::vector<std::int32_t> gap;          // what the template writes between tag and content
  // A bit for each token whose bytes end inside a character: bit id % 32 of word id / 32.
  std::vector<std::uint32_t> cut_characters;
  std::vector<TagOverrun> tag_overruns;
};

// Whether `bytes` end with the beginning of a UTF-8 character.
bool ends_inside_character(std::string_view bytes);

}  // namespace sluice
