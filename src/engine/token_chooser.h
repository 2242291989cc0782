// The next token of a sequence: what its constraint allows, what the sampler makes of the logits,
// and the constraint told of it.
//
// Thread rule: one owner (the engine thread). Allocates at construction, and what constraints need.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/result.h"
#include "engine/sequence.h"
#include "request/request.h"
#include "sampling/sampler.h"

namespace sluice {

struct ChosenToken {
  TokenEvent event;
  bool is_last = false;  // the constraint says that nothing can follow
};

class TokenChooser {
 public:
  // Ids that may be sampled are [0, vocab_size).
  explicit TokenChooser(std::int64_t vocab_size);

  // logits: [vocab_size]. The token is not yet appended to the sequence. Errors: those of the
  // sampler and of the constraint; invalid_argument when nothing is allowed.
  Result<ChosenToken> choose(Sequence& sequence, std::span<const float> logits);

  // What the logits before it say of a token of the prompt.
  Result<TokenEvent> score(std::span<const float> logits, TokenId token, std::int32_t count) {
    return sampler_.score(logits, token, count);
  }

 private:
  Result<std::span<const std::uint32_t>> allowed_tokens(Sequence& sequence);

  std::int64_t vocab_size_;
  Sampler sampler_;
  std::vector<std::uint32_t> allowed_;  // of one token: a bit for each id
};

}  // namespace sluice
