// How large a model of this config is: parameters, bytes of weights per preset, bytes per token of
// context and per sequence. Arithmetic on the config alone (no file is opened); `sluice inspect`
// prints it. What a running engine really holds adds its workspace and the padding of its packed
// layouts, and a state slot that carries rows since the last anchor (model/cache_layout.h).
#pragma once

#include <cstdint>

#include "base/result.h"
#include "weights/model_config.h"
#include "weights/weight_preset.h"

namespace sluice {

struct GroupSizes {
  std::int64_t text = 0;
  std::int64_t mtp = 0;
  std::int64_t vision = 0;
  std::int64_t total() const { return text + mtp + vision; }
};

// Elements of all tensors the config names. A tied head counts once.
GroupSizes count_parameters(const ModelConfig& config);

// Bytes of the weights. A tied head shares the bytes of the embedding in the presets that keep
// lm_head in bf16; in int8 and int4 it is an int8 copy beside the bf16 embedding.
GroupSizes weight_bytes(const ModelConfig& config, WeightPreset preset);

// Bytes of K and V of one token over all full-attention layers, in bf16; of the MTP layers.
std::int64_t kv_bytes_per_token(const ModelConfig& config);
std::int64_t mtp_kv_bytes_per_token(const ModelConfig& config);

// Bytes of one sequence over all linear-attention layers, whatever its length: the recurrent state
// [value_heads, key_dim, value_dim] in fp32, and the last conv_kernel - 1 conv inputs in bf16.
std::int64_t recurrent_state_bytes(const ModelConfig& config);
std::int64_t conv_state_bytes(const ModelConfig& config);

struct MemoryQuery {
  WeightPreset preset = WeightPreset::bf16;
  std::int64_t context_tokens = 0;  // of each sequence; KV is held in whole blocks of 64
  std::int64_t sequences = 1;
  bool with_mtp = false;     // count MTP weights and its KV
  bool with_vision = false;  // count the vision tower
};

struct MemoryEstimate {
  std::int64_t weight_bytes = 0;
  std::int64_t kv_bytes = 0;
  std::int64_t state_bytes = 0;  // recurrent and conv
  std::int64_t total_bytes() const { return weight_bytes + kv_bytes + state_bytes; }
};

// Error invalid_argument for a negative count, a context above kPositionsMax or a total that does
// not fit 63 bits.
Result<MemoryEstimate> estimate_memory(const ModelConfig& config, const MemoryQuery& query);

}  // namespace sluice
