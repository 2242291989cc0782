// The inner half of a gated attention layer for a whole batch: norm and rotation of queries and
// keys, storing keys and values in the KV blocks, causal attention, output gate. Work is split by
// row, and for attention by (sequence, KV head, group of query rows); a row's bits do not see other
// rows.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "kernels/kernel_table.h"
#include "platform/thread_pool.h"

namespace sluice::ops {

struct GatedAttentionShape {
  std::int64_t heads;
  std::int64_t kv_heads;
  std::int64_t head_dim;
  std::int64_t rotary_dim;

  std::int64_t group() const { return heads / kv_heads; }  // query heads per KV head
  kernels::KvBlockLayout kv_layout() const { return {head_dim}; }
};

struct AttentionSequence {
  std::int64_t position;  // tokens already in the KV blocks
  std::int64_t token_begin;
  std::int64_t token_count;
  std::span<const std::int32_t> block_table;
};

struct GatedAttentionArgs {
  GatedAttentionShape shape;
  std::span<const AttentionSequence> sequences;
  std::int64_t rows;
  const float* qg;        // [rows][heads][query head_dim | gate head_dim]
  const float* k;         // [rows][kv_heads][head_dim]
  const float* v;         // [rows][kv_heads][head_dim]
  const float* q_weight;  // [head_dim], 1 + w
  const float* k_weight;
  const float* cos;  // [rows][rotary_dim / 2]
  const float* sin;
  float eps;
  std::byte* kv_blocks;          // this layer's part of block 0
  std::int64_t kv_block_stride;  // bytes from one block to the next
  bf16_t* q_rotated;             // scratch [kv_heads][rows * group][pad32(head_dim)]
  float* attended;               // scratch [rows][heads][head_dim]
  bf16_t* y;                     // result [rows][pad32(heads * head_dim)]
};

void gated_attention(const kernels::KernelTable& table, ThreadPool& pool,
                     const GatedAttentionArgs& args);

}  // namespace sluice::ops
