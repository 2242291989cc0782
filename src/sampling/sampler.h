// Chooses the next token of one sequence from its logits. Pure: the result depends on the arguments
// alone. Randomness is counter-based: a function of (seed, position). Ties go to the lowest id.
// All transcendental functions used are our own and sums have a fixed order, so the choice is the
// same on every CPU.
//
// Order: logit_bias, repetition / presence / frequency penalties, allowed mask, temperature, top-k,
// top-p, min-p, draw. Log-probabilities are of the raw logits (before all of these).
//   repetition: a positive score is divided by the penalty, any other multiplied; once per distinct
//     token of prompt and answer.
//   top-p: the fewest best tokens whose mass reaches top_p of what top-k left; ties at the edge go
//     to the lower id.
//   min-p: tokens with at least min_p times the probability of the best.
//   draw: over the survivors in ascending id.
// Tokens whose score lies more than 87 * temperature below the best have probability 0.
//
// Thread rule: one Sampler per owner (it keeps scratch memory); no allocation after construction
// but for TokenEvent::top_logprobs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/result.h"
#include "request/request.h"
#include "sampling/softmax_weights.h"

namespace sluice {

// A temperature below this is greedy: score differences of 0.001 would already decide.
inline constexpr float kTemperatureMin = 1e-5F;

// Checks every range of SamplingParams; the Error names field, value and limits.
// vocab_size: ids that may be sampled are [0, vocab_size).
Result<void> validate(const SamplingParams& params, std::int64_t vocab_size);

struct SampleInput {
  std::span<const float> logits;       // [n]: only ids that may be sampled (padding rows cut off)
  std::span<const TokenId> prompt;     // tokens of the prompt; ids outside [0, n) are ignored
  std::span<const TokenId> generated;  // tokens generated so far
  std::span<const std::uint32_t> allowed;  // bit per id (grammar); empty = all allowed
  std::int64_t position = 0;               // index in the sequence of the token being chosen
};

class Sampler {
 public:
  // vocab_size: the most ids that logits will ever have.
  explicit Sampler(std::int64_t vocab_size);

  // params have passed validate(). Errors (internal): a logit is NaN or +infinity, with id and
  // value; no token is allowed. -infinity is a token that cannot be chosen.
  Result<TokenEvent> sample(const SampleInput& input, const SamplingParams& params);

  // A token that was not chosen here: its log-probability (-infinity beyond the logits) and those
  // of the `count` best. Errors: as above.
  Result<TokenEvent> score(std::span<const float> logits, TokenId token, std::int32_t count);

 private:
  std::span<const float> adjusted_scores(const SampleInput& input, const SamplingParams& params);
  void apply_penalties(const SampleInput& input, const SamplingParams& params);
  TokenId draw(std::span<const float> scores, float best, const SampleInput& input,
               const SamplingParams& params);
  std::size_t keep_top(std::span<const float> scores, float best, const SamplingParams& params);
  std::size_t keep_top_k(std::span<const float> scores, const WeightScale& scale,
                         const SamplingParams& params);
  void add_logprobs(std::span<const float> logits, float best, std::int32_t count,
                    TokenEvent& event);

  std::vector<float> scores_;         // [vocab]: logits after bias, penalties and mask
  std::vector<float> weights_;        // [vocab]: exp((score - best) / temperature)
  std::vector<TokenId> order_;        // [vocab]: candidates
  std::vector<std::uint32_t> marks_;  // [vocab]: occurrences; all zero between calls
};

}  // namespace sluice
