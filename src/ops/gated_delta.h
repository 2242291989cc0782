// The recurrent half of a Gated DeltaNet layer for a whole batch: causal convolution, l2 norm of
// queries and keys, delta rule (contract GDN-AMX2), gated norm. Reads and advances each sequence's
// state slot. Work is split by channel (convolution), by sequence and key head (delta rule) and by
// row (norm): one owner per output and per piece of state.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "kernels/kernel_table.h"
#include "platform/thread_pool.h"

namespace sluice::ops {

// Sizes of the layer, and the layout of its part of a state slot:
//   [key head: tail_k | its value heads (GdnStateLayout)] ... [conv rows: 3 x channels bf16]
struct GatedDeltaShape {
  std::int64_t key_heads;
  std::int64_t value_heads;
  std::int64_t key_dim;    // per head
  std::int64_t value_dim;  // per head

  std::int64_t heads_per_key() const { return value_heads / key_heads; }
  std::int64_t key_size() const { return key_heads * key_dim; }
  std::int64_t value_size() const { return value_heads * value_dim; }
  std::int64_t channels() const { return 2 * key_size() + value_size(); }
  kernels::GdnStateLayout head_layout() const { return {key_dim, value_dim}; }
  std::int64_t key_head_bytes() const {
    return head_layout().tail_k_bytes() + heads_per_key() * head_layout().value_head_bytes();
  }
  std::int64_t conv_offset() const { return key_heads * key_head_bytes(); }
  std::int64_t state_bytes() const {  // a multiple of 64
    const std::int64_t conv_bytes =
        (kernels::kConvTaps - 1) * channels() * static_cast<std::int64_t>(sizeof(bf16_t));
    return conv_offset() + (conv_bytes + 63) / 64 * 64;
  }
};

// Where to write the state as it is after the first `rows` rows of the slice: byte for byte what a
// call with these rows alone would have left behind.
struct GatedDeltaCheckpoint {
  std::int64_t rows;  // position + rows is a multiple of kGdnChunk
  std::byte* state;   // start of a state slot
};

// The rows of one sequence in the batch, and its state slot.
struct GatedDeltaSequence {
  std::int64_t position;     // tokens the state has seen
  std::int64_t token_begin;  // first row in the batch
  std::int64_t token_count;
  std::byte* state;                                   // start of the slot
  std::span<const GatedDeltaCheckpoint> checkpoints;  // rows ascending, at most token_count
};

// Arrays over the rows of the batch.
struct GatedDeltaArgs {
  GatedDeltaShape shape;
  std::span<const GatedDeltaSequence> sequences;
  std::int64_t rows;
  std::size_t state_offset;  // of this layer's part in a slot
  const bf16_t* u;           // [rows][channels]: in_proj_qkv
  const float* conv_weight;  // [4][channels]
  const float* z;            // [rows][value_size]
  const float* g;            // [rows][value_heads]
  const float* beta;         // [rows][value_heads]
  const float* norm_weight;  // [value_dim]
  float eps;
  float* mixed;  // scratch [rows][channels]
  bf16_t* q;     // scratch [key_heads][rows][pad32(key_dim)]
  bf16_t* k;     // scratch, like q
  float* o;      // scratch [rows][value_size]
  bf16_t* y;     // result [rows][pad32(value_size)]
};

void gated_delta(const kernels::KernelTable& table, ThreadPool& pool, const GatedDeltaArgs& args);

}  // namespace sluice::ops
