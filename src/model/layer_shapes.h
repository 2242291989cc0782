// Operator shapes of a model's layers, derived from its config.
#pragma once

#include "ops/gated_attention.h"
#include "ops/gated_delta.h"
#include "weights/model_config.h"

namespace sluice {

inline ops::GatedDeltaShape gated_delta_shape(const ModelConfig& config) {
  return {.key_heads = config.linear_num_key_heads,
          .value_heads = config.linear_num_value_heads,
          .key_dim = config.linear_key_head_dim,
          .value_dim = config.linear_value_head_dim};
}

inline ops::GatedAttentionShape attention_shape(const ModelConfig& config) {
  return {.heads = config.num_attention_heads,
          .kv_heads = config.num_key_value_heads,
          .head_dim = config.head_dim,
          .rotary_dim = config.rope.rotary_dim};
}

}  // namespace sluice
