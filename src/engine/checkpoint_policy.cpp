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
  return tokens % kCheckpointMarkTokens == 0 ? kMarkWeight : 0.0;
}

}  // namespace sluice
