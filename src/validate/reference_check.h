// How far a model is from another one on a text: normally a quantised one from the bf16 weights it
// was made of. Packing costs a little; a model that is packed wrongly is far away.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "request/request.h"
#include "validate/validation_report.h"
#include "weights/weight_preset.h"

namespace sluice {
class Qwen3_5;
class ThreadPool;
}  // namespace sluice

namespace sluice::validate {

// The text is read in windows of this many tokens, each from nothing, or of the context.
inline constexpr std::int64_t kReferenceWindowTokens = 2048;

struct ReferencePair {
  Qwen3_5& model;
  Qwen3_5& reference;  // of the same vocabulary
  ThreadPool& pool;    // idle between steps
};

struct ReferenceText {
  std::string name;                // "made-up sentences", or a file
  std::vector<TokenId> token_ids;  // two at least
  // What tokens look like, for the report.
  std::function<std::string(std::span<const TokenId>)> spell;
};

// What the two distributions of a next token say of each other.
struct RowComparison {
  double kl = 0.0;   // nats, of the reference's from the model's; not a number where logits are
                     // not finite
  double nll = 0.0;  // of the token that follows, by the model
  double reference_nll = 0.0;
  TokenId best = 0;  // the likeliest, the first of equals
  TokenId reference_best = 0;
};
RowComparison compare_rows(std::span<const float> logits, std::span<const float> reference,
                           TokenId next);

// The mean divergence that a sound model of this preset stays below, in nats per token: several
// times what was seen of trained weights, and more than random ones lose, which have no redundancy
// (int8: 0.02, int4: 0.63).
double divergence_max(WeightPreset preset);

// Reads the text with both models. progress(tokens read) may be empty. Errors: resource_exhausted.
Result<void> check_reference(const ReferencePair& pair, const ReferenceText& text,
                             const std::function<void(std::int64_t tokens)>& progress,
                             Check& check);

}  // namespace sluice::validate
