#include "weights/released_shapes.h"

#include <fmt/format.h>

#include <array>

namespace sluice {
namespace {

constexpr std::int64_t kFullAttentionInterval = 4;
constexpr std::int64_t kPositions = 262144;

constexpr std::array kShapes{
    ReleasedShape{"qwen3.5-0.8b", 1024, 3584, 24, 8, 2, 16, true},
    ReleasedShape{"qwen3.5-2b", 2048, 6144, 24, 8, 2, 16, true},
    ReleasedShape{"qwen3.5-4b", 2560, 9216, 32, 16, 4, 32, true},
    ReleasedShape{"qwen3.5-9b", 4096, 12288, 32, 16, 4, 32, false},
    ReleasedShape{"qwen3.6-27b", 5120, 17408, 64, 24, 4, 48, false},
};

ModelConfig config_of(const ReleasedShape& shape, std::int64_t layers) {
  ModelConfig config;
  config.model_type = "qwen3_5";
  config.hidden_size = shape.hidden_size;
  config.intermediate_size = shape.intermediate_size;
  config.num_hidden_layers = layers;
  config.num_attention_heads = shape.num_attention_heads;
  config.num_key_value_heads = shape.num_key_value_heads;
  config.linear_num_value_heads = shape.linear_num_value_heads;
  config.max_position_embeddings = kPositions;
  config.tie_word_embeddings = shape.tie_word_embeddings;
  for (std::int64_t i = 1; i <= layers; ++i) {
    config.layer_types.push_back(i % kFullAttentionInterval == 0 ? LayerType::full_attention
                                                                 : LayerType::linear_attention);
  }
  return config;
}

}  // namespace

std::span<const ReleasedShape> released_shapes() {
  return kShapes;
}

std::string released_names() {
  std::string names;
  for (const ReleasedShape& shape : kShapes) {
    names += fmt::format("{}{}", names.empty() ? "" : ", ", shape.name);
  }
  return names;
}

Result<ModelConfig> released_config(std::string_view name, std::int64_t layers) {
  for (const ReleasedShape& shape : kShapes) {
    if (shape.name != name) {
      continue;
    }
    if (layers < 0 || layers > shape.num_hidden_layers) {
      return fail(ErrorCode::invalid_argument,
                  fmt::format("{} layers: {} has {}", layers, name, shape.num_hidden_layers));
    }
    return config_of(shape, layers == 0 ? shape.num_hidden_layers : layers);
  }
  return fail(ErrorCode::invalid_argument,
              fmt::format("\"{}\" is no known shape: want one of {}", name, released_names()));
}

}  // namespace sluice
