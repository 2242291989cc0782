#include "model/cache_layout.h"

#include "model/layer_shapes.h"

namespace sluice {

CacheLayout CacheLayout::of(const ModelConfig& config) {
  CacheLayout layout;
  if (config.vision) {
    layout.picture_row_bytes =
        static_cast<std::size_t>(config.vision->out_hidden_size) * sizeof(float);
  }
  const auto kv_bytes = static_cast<std::size_t>(
      attention_shape(config).kv_layout().bytes(config.num_key_value_heads));
  const auto state_bytes = static_cast<std::size_t>(gated_delta_shape(config).state_bytes());
  for (const LayerType type : config.layer_types) {
    std::size_t& total =
        type == LayerType::full_attention ? layout.kv_block_bytes : layout.state_slot_bytes;
    layout.layer_offset.push_back(total);
    total += type == LayerType::full_attention ? kv_bytes : state_bytes;
  }
  return layout;
}

}  // namespace sluice
