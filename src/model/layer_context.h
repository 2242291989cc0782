// What every layer of one step shares: the kernels, the pool, the sequences, the rotary tables.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "kernels/kernel_table.h"
#include "ops/gated_attention.h"
#include "ops/gated_delta.h"
#include "ops/linear.h"
#include "platform/thread_pool.h"

namespace sluice {

struct LayerContext {
  const kernels::KernelTable& table;
  ThreadPool& pool;
  std::int64_t rows = 0;
  const float* rope_cos = nullptr;  // [rows][rotary_dim / 2]
  const float* rope_sin = nullptr;
  std::vector<ops::AttentionSequence> attention_sequences{};
  std::vector<ops::GatedDeltaSequence> delta_sequences{};
  ops::RowTiles tiles{};  // for the input of one product at a time
  std::byte* kv_blocks = nullptr;
  std::int64_t kv_block_stride = 0;

  // The rows of the step as input of products: bf16 [rows][pad32(features)].
  ops::LinearInput input(const bf16_t* x, std::int64_t features) const {
    return {x, rows, features, tiles};
  }
};

}  // namespace sluice
