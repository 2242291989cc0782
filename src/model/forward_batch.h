// One step of the whole batch, as plain views. Built by engine/batch_builder (and by `sluice
// score`), read by the model. No ownership, no cache types.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace sluice {

// Tokens of KV per block.
inline constexpr std::int64_t kKvBlockTokens = 64;

// A state slot that is to receive the sequence's state as it is after `position` tokens.
struct StateCheckpoint {
  std::int64_t position = 0;  // a multiple of kKvBlockTokens
  std::int32_t state_slot = 0;
};

// The rows of one sequence in this step: consecutive in the batch and in the sequence.
struct SequenceSlice {
  std::int64_t position = 0;                  // index in the sequence of its first row here
  std::int64_t token_begin = 0;               // first row in the batch
  std::int64_t token_count = 0;               // >= 1
  std::span<const std::int32_t> block_table;  // block ids for [0, position + token_count)
  std::int32_t state_slot = 0;
  std::span<const StateCheckpoint> checkpoints =
      {};  // in (position, position + token_count], ascending
};

// Rows that take the place of the embeddings of their tokens: what the vision encoder made of a
// picture, for its placeholders.
struct EmbeddingRows {
  std::int64_t token_begin = 0;  // first row in the batch
  std::int64_t row_count = 0;    // >= 1
  const float* rows = nullptr;   // [row_count][hidden_size]
};

struct ForwardBatch {
  std::span<const std::int32_t> token_ids;         // [T]
  std::span<const std::int32_t> rope_positions;    // [3][T]: temporal, height, width
  std::span<const SequenceSlice> sequences;        // cover the T rows, in order, without overlap
  std::span<const std::int32_t> logit_rows;        // rows whose logits are wanted, ascending
  std::span<const EmbeddingRows> embeddings = {};  // ascending, not overlapping; none for text
};

// Memory of the cache, owned elsewhere (cache/). Layout: model/cache_layout.h. Blocks and slots are
// zero when a sequence gets them.
struct CacheMemory {
  std::byte* kv_blocks = nullptr;    // block id * kv_block_bytes
  std::byte* state_slots = nullptr;  // slot * state_slot_bytes
};

}  // namespace sluice
