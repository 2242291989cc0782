// What only the vision encoder computes: one row at a time.
#include <algorithm>
#include <cmath>

#include "kernels/ref/canonical.h"
#include "kernels/ref/table.h"
#include "kernels/scalar_math.h"

namespace sluice::kernels::ref {

void embed_patch(const EmbedPatchArgs& args) noexcept {
  for (std::int64_t i = 0; i < args.size; ++i) {
    float position = 0.0F;
    for (int tap = 0; tap < 4; ++tap) {
      position = std::fma(args.weights[tap], bf16_to_float(args.taps[tap][i]), position);
    }
    args.x[i] = std::fma(args.x[i], args.scale, args.bias[i]) + position;
  }
}

void layer_norm(const LayerNormArgs& args) noexcept {
  const auto size = static_cast<float>(args.size);
  float sums[16] = {};
  for (std::int64_t i = 0; i < args.size; ++i) {
    sums[i % 16] = sums[i % 16] + args.x[i];
  }
  const float mean = fold_lanes(sums) / size;
  float squares[16] = {};
  for (std::int64_t i = 0; i < args.size; ++i) {
    const float d = args.x[i] - mean;
    squares[i % 16] = std::fma(d, d, squares[i % 16]);
  }
  const float scale = 1.0F / std::sqrt(fold_lanes(squares) / size + args.eps);
  for (std::int64_t i = 0; i < args.size; ++i) {
    const float normed = (args.x[i] - mean) * scale;
    args.y[i] = float_to_bf16(std::fma(normed, args.weight[i], args.bias[i]));
  }
  std::fill(args.y + args.size, args.y + args.y_size, bf16_t{0});
}

void bias_rope(const BiasRopeArgs& args) noexcept {
  const std::int64_t half = args.head_dim / 2;
  for (std::int64_t i = 0; i < half; ++i) {
    const float a = args.x[i] + args.bias[i];
    const float b = args.x[i + half] + args.bias[i + half];
    args.y[i] = float_to_bf16(std::fma(-b, args.sin[i], a * args.cos[i]));
    args.y[i + half] = float_to_bf16(std::fma(a, args.sin[i], b * args.cos[i]));
  }
  std::fill(args.y + args.head_dim, args.y + pad32(args.head_dim), bf16_t{0});
}

void full_attention(const FullAttentionArgs& args) noexcept {
  const KvBlockLayout layout{args.head_dim};
  float out[kFullAttentionHeadDimMax];
  const std::int64_t out_offset = 0;
  for (std::int64_t row = 0; row < args.rows; ++row) {
    attention({.q = args.q + row * pad32(args.head_dim),
               .visible = &args.keys,
               .out = out,
               .out_offset = &out_offset,
               .rows = 1,
               .head_dim = args.head_dim,
               .kv_blocks = reinterpret_cast<const std::byte*>(args.kv),
               .kv_block_stride = layout.bytes(1),
               .block_table = nullptr,
               .scale = args.scale});
    to_bf16(out, args.out + row * args.out_stride, args.head_dim);
  }
}

void bias_gelu(const float* x, const float* bias, bf16_t* y, std::int64_t size) noexcept {
  for (std::int64_t i = 0; i < size; ++i) {
    y[i] = float_to_bf16(gelu_f32(x[i] + bias[i]));
  }
}

void bias_gelu_tanh(const float* x, const float* bias, bf16_t* y, std::int64_t size) noexcept {
  for (std::int64_t i = 0; i < size; ++i) {
    y[i] = float_to_bf16(gelu_tanh_f32(x[i] + bias[i]));
  }
}

void add_with_bias(float* x, const float* y, const float* bias, std::int64_t size) noexcept {
  for (std::int64_t i = 0; i < size; ++i) {
    x[i] = x[i] + (y[i] + bias[i]);
  }
}

}  // namespace sluice::kernels::ref
