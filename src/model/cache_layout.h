// Bytes of one KV block and of one state slot, where each layer's part lies in them, and of what
// the vision encoder leaves.
// The engine sizes its pools with this; the kernels' inner layouts are in kernels/kernel_table.h.
#pragma once

#include <cstddef>
#include <vector>

#include "weights/model_config.h"

namespace sluice {

struct CacheLayout {
  std::size_t kv_block_bytes = 0;         // 64 tokens, all full-attention layers, K and V, bf16
  std::size_t state_slot_bytes = 0;       // all linear-attention layers: recurrent and conv state
  std::vector<std::size_t> layer_offset;  // per layer, into the block or the slot
  std::size_t picture_row_bytes = 0;      // a row that the vision encoder makes; 0: there is none

  static CacheLayout of(const ModelConfig& config);
};

}  // namespace sluice
