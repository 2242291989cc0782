#include "engine/checkpoint_policy.h"

#include <algorithm>

#include "cache/prefix_tree.h"

namespace sluice {
namespace {

constexpr double kMarkWeight = 1.0;
constexpr double kAnswerWeight = 2.0;
constexpr double kBoundaryWeight = 4.0;

// Whether some value lies in [tokens, tokens + 64): then `tokens` ends its last whole block.
bool ends_block_of(std::span<const std::int64_t> values, std::int64_t tokens) {
  const auto first = std::ranges::lower_bound(values, tokens);
  return first != values.end() && *first < tokens + kPrefixBlockTokens;
}

// A mark is for prompts that part from this one before the next checkpoint: with one close behind
// it, hardly any will. Otherwise a mark right before a boundary would be worth as much as that, and
// the boundary be given up for it.
double mark_weight(std::span<const std::int64_t> keep_at, std::int64_t prompt_tokens,
                   std::int64_t tokens) {
  const auto first = std::ranges::lower_bound(keep_at, tokens);
  const std::int64_t next =
      first != keep_at.end() ? std::min(*first, prompt_tokens - 1) : prompt_tokens - 1;
  const std::int64_t gap = next / kPrefixBlockTokens * kPrefixBlockTokens - tokens;
  return kMarkWeight *
         static_cast<double>(std::clamp(gap, std::int64_t{0}, kCheckpointMarkTokens)) /
         static_cast<double>(kCheckpointMarkTokens);
}

}  // namespace

double checkpoint_weight(std::int64_t prompt_tokens, std::span<const std::int64_t> keep_at,
                         std::int64_t tokens) {
  // The same prompt again computes its last token anew, a longer one goes on after it.
  const std::int64_t ends[] = {prompt_tokens - 1, prompt_tokens};
  if (ends_block_of(keep_at, tokens) || ends_block_of(ends, tokens)) {
    return kBoundaryWeight;
  }
  if (tokens > prompt_tokens) {
    return kAnswerWeight;
  }
  return tokens % kCheckpointMarkTokens == 0 ? mark_weight(keep_at, prompt_tokens, tokens) : 0.0;
}

}  // namespace sluice
