// Chooses the next token of one sequence from its logits. Pure: the result depends on the arguments
// alone. Randomness is counter-based: a function of (seed, position). Ties go to the lowest id.
// All transcendental functions used are our own, so the choice is the same on every CPU.
//
// Order: logit_bias, repetition / presence / frequency penalties, allowed mask, temperature, top-k,
// top-p, min-p, draw. Log-probabilities are of the raw logits (before all of these).
//
// Thread rule: one Sampler per owner (it keeps scratch memory); no allocation after construction.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/result.h"
#include "request/request.h"

namespace sluice {

inline constexpr std::int32_t kLogprobsMax = 20;

// Checks every range of SamplingParams; the Error names field, value and limits.
Result<void> validate(const SamplingParams& params, std::int64_t vocab_size);

struct SampleInput {
  std::span<const float> logits;       // [n]: only ids that may be sampled (padding rows cut off)
  std::span<const TokenId> prompt;     // tokens of the prompt
  std::span<const TokenId> generated;  // tokens generated so far
  std::span<const std::uint32_t> allowed;  // bit per id (grammar); empty = all allowed
  std::int64_t position = 0;               // index in the sequence of the token being chosen
};

class Sampler {
 public:
  explicit Sampler(std::int64_t vocab_size);

  // params have passed validate().
  TokenEvent sample(const SampleInput& input, const SamplingParams& params);

 private:
  std::vector<float> scores_;
  std::vector<TokenId> order_;
  std::vector<std::int32_t> counts_;
};

}  // namespace sluice
