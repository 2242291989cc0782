// Where the state of a sequence is worth keeping. A checkpoint costs as much memory as thousands of
// tokens of KV, so it is placed where a later prompt is likely to leave this one: at the ends of
// what the template will render again, at the end of the prompt, where another prompt is known to
// branch off, at the last whole block of an answer, and as marks in between, which the cache thins
// out when memory is short (cache/prefix_tree.h).
#pragma once

#include <cstdint>
#include <span>

namespace sluice {

inline constexpr std::int64_t kCheckpointMarkTokens = 256;

// How likely a checkpoint after `tokens` tokens (a multiple of 64) is to be resumed from, against a
// mark (1); 0: not worth making. keep_at: token counts, ascending, whose last whole block is to be
// kept.
double checkpoint_weight(std::int64_t prompt_tokens, std::span<const std::int64_t> keep_at,
                         std::int64_t tokens);

}  // namespace sluice
