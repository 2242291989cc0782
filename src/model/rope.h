// Rotary tables of the text model: interleaved 3-axis positions on the first rotary_dim channels.
// Angle = position * inverse frequency; inverse frequencies are fp32 values, as in the reference
// code (transformers, Qwen3_5TextRotaryEmbedding); the product, sine and cosine are fp64, rounded
// to fp32.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "weights/model_config.h"

namespace sluice {

class Rope {
 public:
  explicit Rope(const RopeParameters& parameters);

  // Frequencies, also values per row of the tables.
  std::int64_t half() const { return static_cast<std::int64_t>(inverse_frequency_.size()); }

  // positions: [3][rows]. cos, sin: [rows][half()].
  void tables(std::span<const std::int32_t> positions, std::int64_t rows, float* cos,
              float* sin) const;

 private:
  std::vector<float> inverse_frequency_;
  std::vector<std::int64_t> axis_;  // which of (temporal, height, width) drives a frequency
};

}  // namespace sluice
