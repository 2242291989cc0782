#include "engine/batch_builder.h"

#include <algorithm>

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
  embeddings_.reserve(tokens_max);  // a picture has at least one row
}

ForwardBatch BatchBuilder::build(const StepPlan& plan, std::span<const Sequence* const> sequences) {
  SLUICE_CHECK(sequences.size() == plan.rows.size());
  SLUICE_CHECK(static_cast<std::size_t>(plan.token_count) <= token_ids_.capacity());
  SLUICE_CHECK(plan.rows.size() <= slices_.capacity());
  const auto token_count = static_cast<std::size_t>(plan.token_count);
  token_ids_.clear();
  slices_.clear();
  logit_rows_.clear();
  embeddings_.clear();
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
    add_pictures(sequence, rows);
    for (std::int64_t position = rows.position; position < end; ++position) {
      const auto axes = sequence.rope_positions.at(position);
      for (std::size_t axis = 0; axis < 3; ++axis) {
        rope_positions_[axis * token_count + token_ids_.size()] = axes[axis];
      }
      // A picture's name is no token of the model: its row is given, whatever the id.
      token_ids_.push_back(std::max(sequence.tokens[static_cast<std::size_t>(position)], 0));
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
          .logit_rows = logit_rows_,
          .embeddings = embeddings_};
}

// The parts of its pictures that are among the rows.
void BatchBuilder::add_pictures(const Sequence& sequence, const PlannedRows& rows) {
  const std::int64_t end = rows.position + rows.token_count;
  for (const SequencePicture& picture : sequence.pictures) {
    const std::int64_t first = std::max(picture.position, rows.position);
    const std::int64_t last = std::min(picture.end(), end);
    if (first >= last) {
      continue;
    }
    SLUICE_CHECK(picture.rows != nullptr);
    const std::int64_t row_size = std::ssize(*picture.rows) / picture.input->token_count();
    embeddings_.push_back({.token_begin = std::ssize(token_ids_) + first - rows.position,
                           .row_count = last - first,
                           .rows = picture.rows->data() + (first - picture.position) * row_size});
  }
}

}  // namespace sluice
