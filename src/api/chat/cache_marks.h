// Where in a prompt a client asked for a reusable state (`cache_control` on a part of a message).
//
// A mark is an offset in the text of a turn. Only the template knows where that text ends up, so
// the conversation is rendered a second time with a short text at each mark, and both prompts are
// compared: a mark counts if everything before it is the same in both.
//
//   plain   <|im_start|>system\nA B<|im_end|>...
//   marked  <|im_start|>system\nA#B<|im_end|>...      (#: the mark's text; the space after it
//   moved)
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "api/chat/chat_turn.h"
#include "text/tokenizer.h"

namespace sluice {

inline constexpr std::size_t kCacheMarksMax = 8;  // used of one request: the last ones

// Whether any turn has a mark.
bool has_cache_marks(const std::vector<ChatTurn>& turns);

// The same turns with the mark's text at each mark, before white space, which templates trim.
std::vector<ChatTurn> with_mark_texts(const std::vector<ChatTurn>& turns);

// Byte offsets of the marks in `plain`, ascending.
std::vector<std::size_t> marked_offsets(std::string_view plain, std::string_view marked);

// How many whole tokens of the encoded prompt lie before each offset. Empty when the tokens do not
// spell the prompt (the tokenizer normalised it): positions would be guesses then.
std::vector<std::int64_t> token_positions(std::span<const std::int32_t> token_ids,
                                          const std::string& prompt,
                                          const std::vector<std::size_t>& offsets,
                                          const Tokenizer& tokenizer);

}  // namespace sluice
