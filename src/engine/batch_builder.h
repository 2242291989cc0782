// Turns a StepPlan and the cache handles of its sequences into the plain views the model reads.
// The one place that knows both sides. All memory is reserved at construction.
//
// Thread rule: one owner (the engine thread).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "engine/sequence.h"
#include "model/forward_batch.h"
#include "scheduler/step_plan.h"

namespace sluice {

struct BatchLimits {
  std::int64_t tokens_max = 0;     // rows of one step
  std::int64_t sequences_max = 0;  // sequences of one step
};

class BatchBuilder {
 public:
  explicit BatchBuilder(const BatchLimits& limits);

  // sequences[i] is the sequence of plan.rows[i]; its block table and slot cover the planned rows.
  // The views stay valid until the next call and as long as the sequences do.
  ForwardBatch build(const StepPlan& plan, std::span<const Sequence* const> sequences);

 private:
  void add_pictures(const Sequence& sequence, const PlannedRows& rows);

  std::vector<TokenId> token_ids_;            // [T]
  std::vector<std::int32_t> rope_positions_;  // [3][T]
  std::vector<SequenceSlice> slices_;
  std::vector<std::int32_t> logit_rows_;
  std::vector<EmbeddingRows> embeddings_;
};

}  // namespace sluice
