// Attention of the vision encoder: every row of a unit (a picture, or two frames of a video) sees
// every other. Keys and values are stored piece by piece, then queries attend piece by piece. Work
// is split by head and group of rows; a row's bits do not see other rows.
#pragma once

#include <cstdint>

#include "kernels/kernel_table.h"
#include "platform/thread_pool.h"

namespace sluice::ops {

struct FullAttentionShape {
  std::int64_t heads;
  std::int64_t head_dim;  // <= kernels::kFullAttentionHeadDimMax, a multiple of 4
  std::int64_t keys;      // rows of the unit

  std::int64_t size() const { return heads * head_dim; }
  // Keys and values of one head: blocks of KvBlockLayout one after another. Of all heads: heads
  // times that. Zero before the first store.
  std::int64_t head_elements() const;
  std::int64_t kv_elements() const { return heads * head_elements(); }
};

// Rows [first, first + rows) of the unit become keys and values.
struct StoreKeysArgs {
  FullAttentionShape shape;
  std::int64_t first;
  std::int64_t rows;
  float* kv_product;  // [rows][keys size | values size]; the values get their bias in place
  const float* k_bias;
  const float* v_bias;
  const float* cos;  // [rows][head_dim / 2]
  const float* sin;
  bf16_t* kv;
};
void store_keys(const kernels::KernelTable& table, ThreadPool& pool, const StoreKeysArgs& args);

// Any `rows` rows of the unit attend to all its keys.
struct AttendArgs {
  FullAttentionShape shape;
  std::int64_t rows;
  const float* q_product;  // [rows][size]
  const float* q_bias;
  const float* cos;  // [rows][head_dim / 2]
  const float* sin;
  bf16_t* q_rotated;  // scratch [heads][rows][pad32(head_dim)]
  const bf16_t* kv;
  bf16_t* out;  // [rows][pad32(size)]
};
void attend(const kernels::KernelTable& table, ThreadPool& pool, const AttendArgs& args);

}  // namespace sluice::ops
