// The released sizes of the family, by name: what `sluice bench --shape` takes and what tests of
// sizes use. Their other fields are the same in all releases (ModelConfig's defaults).
// Source: the public config.json files.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"
#include "weights/model_config.h"

namespace sluice {

struct ReleasedShape {
  std::string_view name;
  std::int64_t hidden_size;
  std::int64_t intermediate_size;
  std::int64_t num_hidden_layers;
  std::int64_t num_attention_heads;
  std::int64_t num_key_value_heads;
  std::int64_t linear_num_value_heads;
  bool tie_word_embeddings;
};

// Smallest first.
std::span<const ReleasedShape> released_shapes();

// "qwen3.5-0.8b, qwen3.5-2b, ...".
std::string released_names();

// The text model of that name, without MTP and vision, cut after its first `layers` layers (0:
// all). Errors invalid_argument: an unknown name, with those there are; layers outside the model.
Result<ModelConfig> released_config(std::string_view name, std::int64_t layers);

}  // namespace sluice
