// What may come next in a sequence, beyond what the model prefers: grammars, limits of reasoning,
// forbidden words. The engine asks before each token and reports the one it chose; it knows nothing
// of what is behind.
//
// A token is forced by allowing no other. The constraint sees all generated tokens, the stop token
// too, and nothing else, so it follows the sequence wherever that is computed, and the same tokens
// always give the same constraint. Log-probabilities stay those of the raw logits.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "base/result.h"
#include "request/request.h"

namespace sluice {

// The state of one sequence. Thread rule: one owner, the engine thread from submit() on.
//
// An Error of any method ends that sequence alone. invalid_argument and resource_exhausted say that
// the request asked for something that cannot go on, any other code is a fault of ours.
class TokenConstraint {
 public:
  TokenConstraint() = default;
  TokenConstraint(const TokenConstraint&) = delete;
  TokenConstraint& operator=(const TokenConstraint&) = delete;
  virtual ~TokenConstraint() = default;

  // Clears the bits of the tokens that may not come next: bit id % 32 of allowed[id / 32]. All bits
  // are set before, those beyond the vocabulary too. True when it cleared any; false, with all bits
  // left as they are, when everything may come.
  virtual Result<bool> narrow(std::span<std::uint32_t> allowed) = 0;

  // The token that was chosen, one that narrow() allowed.
  virtual Result<void> accept(TokenId token) = 0;

  // Whether nothing can follow any more: the sequence then ends with FinishReason::stop.
  virtual Result<bool> is_finished() = 0;
};

// Makes the constraint of each sequence of a request. Whatever takes long is done before, so that
// start() is fast. Thread rule: immutable; start() may be called from any thread.
class ConstraintFactory {
 public:
  ConstraintFactory() = default;
  ConstraintFactory(const ConstraintFactory&) = delete;
  ConstraintFactory& operator=(const ConstraintFactory&) = delete;
  virtual ~ConstraintFactory() = default;

  virtual Result<std::unique_ptr<TokenConstraint>> start() const = 0;
};

}  // namespace sluice
