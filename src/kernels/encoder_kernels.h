// What only the vision encoder computes: arguments of its entries of the kernel table. The rules of
// kernel_table.h hold. Products come without their bias; whoever reads them first adds it.
#pragma once

#include <cstdint>

#include "kernels/layout.h"

namespace sluice::kernels {

// A patch on its way from the product of its pixels to the residual stream:
// x = fma(x, scale, bias) + position, where position is the FMA chain from zero over four rows of
// the position table times their weights, ascending.
struct EmbedPatchArgs {
  float* x;  // in: the product
  const float* bias;
  const bf16_t* taps[4];
  float weights[4];
  std::int64_t size;
  float scale;
};

// y = fma((x - mean) * scale, weight, bias), rounded to bf16; scale = 1 / sqrt(var + eps). Sums of
// x and of (x - mean)^2 as in RmsNormArgs (the first by additions); divided by size. Zeros from
// size up to y_size.
struct LayerNormArgs {
  const float* x;
  const float* weight;
  const float* bias;
  bf16_t* y;
  std::int64_t size;
  std::int64_t y_size;
  float eps;
};

// One attention head row, all channels rotated: pairs (i, i + head_dim / 2) of x + bias, then bf16,
// padded with zeros to pad32(head_dim).
struct BiasRopeArgs {
  const float* x;
  const float* bias;
  const float* cos;  // [head_dim / 2]
  const float* sin;
  bf16_t* y;
  std::int64_t head_dim;
};

// Attention of query rows that all see all keys of one head: AttentionArgs with visible = keys for
// each, rounded to bf16.
struct FullAttentionArgs {
  const bf16_t* q;  // [rows][pad32(head_dim)]
  bf16_t* out;      // exactly head_dim values a row
  std::int64_t out_stride;
  std::int64_t rows;      // >= 1
  std::int64_t head_dim;  // <= kFullAttentionHeadDimMax
  const bf16_t* kv;       // blocks of KvBlockLayout, one after another; zero beyond `keys`
  std::int64_t keys;      // >= 1
  float scale;            // > 0
};
inline constexpr std::int64_t kFullAttentionHeadDimMax = 128;

}  // namespace sluice::kernels
