// Which format every linear weight of a model is held in. One name for the whole choice.
#pragma once

#include <array>
#include <optional>
#include <string_view>

#include "kernels/weight_format.h"

namespace sluice {

// Embeddings and DeltaNet gates (in_proj_a, in_proj_b) stay bf16 in every preset, vectors fp32,
// MTP's fc and the vision tower bf16.
enum class WeightPreset {
  bf16,     // everything
  mlp_fp8,  // the MLP in fp8, the rest bf16
  fp8,      // all linear weights but lm_head in e4m3, one fp32 scale per 128 x 128 block
  int8,     // all linear weights, one fp32 scale per output channel
  int4,     // all linear weights in groups of 32 inputs, lm_head in int8
};

inline constexpr std::array kWeightPresets{WeightPreset::bf16, WeightPreset::mlp_fp8,
                                           WeightPreset::fp8, WeightPreset::int8,
                                           WeightPreset::int4};

// "bf16", "mlp-fp8", "fp8", "int8", "int4".
std::string_view to_string(WeightPreset preset);
std::optional<WeightPreset> weight_preset_from_name(std::string_view name);

// Whether the preset holds the matrix `name` of a checkpoint in its own width. A tied head goes by
// the name of the embedding, "...embed_tokens.weight".
bool is_narrow(WeightPreset preset, std::string_view name);

// The format of the matrix `name`.
kernels::WeightFormat weight_format(WeightPreset preset, std::string_view name);

// Whether some products are those of integers, lm_head's among them.
bool has_integer_weights(WeightPreset preset);

}  // namespace sluice
