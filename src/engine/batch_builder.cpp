#include "engine/batch_builder.h"

#include "base/check.h"
#include "base/checked_math.h"

namespace sluice {

BatchBuilder::BatchBuilder(const BatchLimits& limits) {
  const auto tokens_max = static_cast<std::size_t>(limits.tokens_max);
  const auto sequences_max = static_cast<std::size_t>(limits.sequences_max);
  token_ids_.reserve(tokens_max);
  rope_positions_.reserve(3 * tokens_max);
  slices_.reserve(sequences_max);
  logit_rows_.reserve(tokens_max);
}

ForwardBatch BatchBuilder::build(const StepPlan& plan, std::span<const Sequence* const> sequences) {
  SLUICE_CHECK(sequences.size() == plan.rows.size());
  SLUICE_CHECK(static_cast<std::size_t>(plan.token_count) <= token_ids_.capacity());
  SLUICE_CHECK(plan.rows.size() <= slices_.capacity());
  const auto token_count = static_cast<std::size_t>(plan.token_count);
  token_ids_.clear();
  slices_.clear();
  logit_rows_.clear();
  rope_positions_.resize(3 * token_count);
  for (std::size_t i = 0; i < plan.rows.size(); ++i) {
    const PlannedRows& rows = plan.rows[i];
    const Sequence& sequence = *sequences[i];
    const std::int64_t end = rows.position + rows.token_count;
    const std::int64_t blocks = ceil_div(end, kKvBlockTokens);
    SLUICE_CHECK(sequence.id == rows.sequence);
    SLUICE_CHECK(end <= std::ssize(sequence.tokens));
    SLUICE_CHECK(blocks <= std::ssize(sequence.cache.block_table));
    slices_.push_back(
        {.position = rows.position,
         .token_begin = std::ssize(token_ids_),
         .token_count = rows.token_count,
         .block_table =
             std::span(sequence.cache.block_table).first(static_cast<std::size_t>(blocks)),
         .state_slot = sequence.cache.state_slot,
         .checkpoints = sequence.checkpoints});
    for (std::int64_t position = rows.position; position < end; ++position) {
      // Text only: the temporal, height and width axes are all the position.
      for (std::size_t axis = 0; axis < 3; ++axis) {
        rope_positions_[axis * token_count + token_ids_.size()] =
            static_cast<std::int32_t>(position);
      }
      token_ids_.push_back(sequence.tokens[static_cast<std::size_t>(position)]);
    }
    for (std::int64_t k = rows.logit_row_count; k > 0; --k) {
      logit_rows_.push_back(static_cast<std::int32_t>(std::ssize(token_ids_) - k));
    }
  }
  SLUICE_CHECK(token_ids_.size() == token_count);
  SLUICE_CHECK(std::ssize(logit_rows_) == plan.logit_row_count);
  return {.token_ids = token_ids_,
          .rope_positions = rope_positions_,
          .sequences = slices_,
          .logit_rows = logit_rows_};
}

}  // namespace sluice
