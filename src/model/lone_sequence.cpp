#include "model/lone_sequence.h"

#include <cstddef>
#include <numeric>

#include "base/checked_math.h"

namespace sluice {

Result<LoneSequence> LoneSequence::create(Qwen3_5& model, std::int64_t tokens_max) {
  LoneSequence sequence(model);
  const CacheLayout& layout = model.cache_layout();
  const std::int64_t blocks = ceil_div(tokens_max, kKvBlockTokens);
  sequence.kv_ =
      SLUICE_TRY(AlignedBuffer::allocate(static_cast<std::size_t>(blocks) * layout.kv_block_bytes));
  sequence.state_ = SLUICE_TRY(AlignedBuffer::allocate(layout.state_slot_bytes));
  sequence.block_table_.resize(static_cast<std::size_t>(blocks));
  std::iota(sequence.block_table_.begin(), sequence.block_table_.end(), 0);
  return sequence;
}

void LoneSequence::forward(std::span<const TokenId> token_ids, std::span<const std::int32_t> rows,
                           std::span<float> logits) {
  const auto count = static_cast<std::int64_t>(token_ids.size());
  rope_positions_.clear();
  for (int axis = 0; axis < 3; ++axis) {  // text: all three axes count alike
    for (std::int64_t i = 0; i < count; ++i) {
      rope_positions_.push_back(static_cast<std::int32_t>(position_ + i));
    }
  }
  const auto blocks = static_cast<std::size_t>(ceil_div(position_ + count, kKvBlockTokens));
  const SequenceSlice slice{.position = position_,
                            .token_begin = 0,
                            .token_count = count,
                            .block_table = std::span(block_table_).first(blocks),
                            .state_slot = 0};
  const ForwardBatch batch{.token_ids = token_ids,
                           .rope_positions = rope_positions_,
                           .sequences = std::span(&slice, 1),
                           .logit_rows = rows};
  model_->forward(batch, {.kv_blocks = kv_.data(), .state_slots = state_.data()}, logits);
  position_ += count;
}

}  // namespace sluice
