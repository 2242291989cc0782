// One function pointer per single-thread operator. `ref` fills every entry; each ISA starts from
// the table below it and overrides what it does better. Chosen once at start (kernels/select.h).
//
// Every entry is of class "invariant": all tables give the same bits, for any number of rows in a
// call (docs/NUMERICS.md states each reduction order; ref/ is its executable form). Callers have
// the float mode of platform/float_mode.h. Kernels neither allocate, log, throw nor start threads.
//
// bf16 rows that feed a product are padded with zeros to a multiple of 32 columns. Strides are in
// elements. T rows, H hidden size.
#pragma once

#include <cstdint>

#include "kernels/encoder_kernels.h"
#include "kernels/int_product.h"
#include "kernels/layout.h"

namespace sluice::kernels {

// out[m, n] = a[m, k] . w[n, k]^T for the panels [panel_begin, panel_end) of w in bf16 or fp8.
// Order of one output: steps of 32 k ascending; per step one FMA chain over even k and one over odd
// k, both from zero; acc += even + odd (what AMX TDPBF16PS computes). With k_slices = 4 the steps
// are cut into 4 equal runs, each summed from zero, result (0 + 1) + (2 + 3).
struct GemmArgs {
  const bf16_t* a;     // in tiles: row_tiles_elements(m, k)
  const std::byte* w;  // kernels/weight_format.h, 64-byte aligned
  float* out;
  std::int64_t out_stride;
  std::int64_t m;
  std::int64_t n;         // valid columns; columns of the last panel beyond n are not written
  std::int64_t k_steps;   // pad32(k) / 32
  std::int64_t k_slices;  // 1 or 4
  std::int64_t panel_begin;
  std::int64_t panel_end;
};

// y = x / sqrt(mean(x^2) + eps) * weight, rounded to bf16. Sum of squares: 16 lanes (element i in
// lane i % 16), each an ascending FMA chain, folded 8, 4, 2, 1. y is padded with zeros to
// pad32(size).
struct RmsNormArgs {
  const float* x;
  const float* weight;  // already 1 + w where the model says so
  bf16_t* y;
  std::int64_t size;
  float eps;
};

// One attention head row: RMSNorm over head_dim (sum as above), rotation of channels (i, i + half),
// i < half, then bf16, padded with zeros to pad32(head_dim).
struct NormRopeArgs {
  const float* x;
  const float* weight;
  const float* cos;  // [half]
  const float* sin;  // [half]
  bf16_t* y;
  std::int64_t head_dim;
  std::int64_t half;
  float eps;
};

// Causal attention of `rows` query rows (row = one query head at one position) against one KV head.
// Per row: keys in blocks of 64 with a running maximum, segments of kAttentionSegment keys merged
// in ascending order; out = sum(p v) / sum(p).
struct AttentionArgs {
  const bf16_t* q;              // [rows][pad32(head_dim)]
  const std::int64_t* visible;  // [rows]: keys 0 .. visible - 1 are seen; >= 1
  float* out;                   // row r at out + out_offset[r]
  const std::int64_t* out_offset;
  std::int64_t rows;  // 1 .. kAttentionRowsMax
  std::int64_t head_dim;
  const std::byte* kv_blocks;  // of this layer and KV head: block id * kv_block_stride bytes
  std::int64_t kv_block_stride;
  const std::int32_t* block_table;  // null: blocks 0, 1, 2, ..
  float scale;
};
inline constexpr std::int64_t kAttentionRowsMax = 128;
inline constexpr std::int64_t kHeadDimMax = 256;

// Causal depthwise convolution over time with 4 taps, then silu.
// out[t, c] = silu(sum_j w[j, c] * u[t - 3 + j, c]), j ascending; rows before the first are
// `history`.
struct ConvArgs {
  const bf16_t* u;  // [rows][stride]
  std::int64_t u_stride;
  const bf16_t* history;  // [3][channels of the layer], oldest first
  std::int64_t history_stride;
  const float* weight;  // [4][weight_stride]
  std::int64_t weight_stride;
  float* out;
  std::int64_t out_stride;
  std::int64_t rows;
  std::int64_t channels;
};

// q or k of one head: x / sqrt(sum(x^2) + 1e-6), rounded to bf16, padded to pad32(size).
struct L2NormArgs {
  const float* x;
  bf16_t* y;
  std::int64_t size;
};

// n rows of one value head inside one chunk: tail rows m0 .. m0 + n - 1 (m0 + n <= 32). The key
// head's tail_k already holds these rows (gdn_append_keys). Writes tail_u and tail_g, reads the
// planes.
struct GdnChunkArgs {
  std::byte* value_head;  // GdnStateLayout
  const bf16_t* tail_k;
  const bf16_t* q;  // [n][pad32(key_dim)], l2-normalised
  const bf16_t* k;
  const float* v;
  std::int64_t v_stride;
  const float* g;  // log decay <= 0, one per row at stride gate_stride
  const float* beta;
  std::int64_t gate_stride;
  float* out;
  std::int64_t out_stride;
  std::int64_t m0;
  std::int64_t n;
  GdnStateLayout layout;
};

// Folds a full tail of 32 rows into the planes of one value head.
struct GdnFoldArgs {
  std::byte* value_head;
  const bf16_t* tail_k;
  GdnStateLayout layout;
};

// y = (x / sqrt(mean(x^2) + eps)) * weight * silu(z) for one value head, rounded to bf16.
struct GatedNormArgs {
  const float* x;
  const float* z;
  const float* weight;
  bf16_t* y;  // exactly size values, no padding (heads are adjacent)
  std::int64_t size;
  float eps;
};

struct KernelTable {
  const char* name;  // "ref", "avx2", "avx512", "amx"

  void (*gemm_bf16)(const GemmArgs&) noexcept;
  void (*gemm_fp8)(const GemmArgs&) noexcept;
  void (*gemm_int8)(const IntGemmArgs&) noexcept;
  void (*gemm_int4)(const IntGemmArgs&) noexcept;
  void (*quantise_row)(const QuantiseRowArgs&) noexcept;
  void (*rms_norm)(const RmsNormArgs&) noexcept;
  void (*norm_rope)(const NormRopeArgs&) noexcept;
  void (*attention)(const AttentionArgs&) noexcept;
  void (*conv_silu)(const ConvArgs&) noexcept;
  void (*l2_norm)(const L2NormArgs&) noexcept;
  void (*gdn_chunk)(const GdnChunkArgs&) noexcept;
  void (*gdn_fold)(const GdnFoldArgs&) noexcept;
  void (*gated_norm)(const GatedNormArgs&) noexcept;

  // y[i] = bf16(silu(gate[i]) * up[i]); size values.
  void (*silu_mul)(const float* gate, const float* up, bf16_t* y, std::int64_t size) noexcept;
  // y[i] = bf16(x[i] * sigmoid(gate[i])).
  void (*sigmoid_mul)(const float* x, const float* gate, bf16_t* y, std::int64_t size) noexcept;
  // x[i] += y[i].
  void (*add)(float* x, const float* y, std::int64_t size) noexcept;
  // y[i] = bf16(x[i]), to nearest even; and back.
  void (*to_bf16)(const float* x, bf16_t* y, std::int64_t size) noexcept;
  void (*to_f32)(const bf16_t* x, float* y, std::int64_t size) noexcept;

  // The vision encoder's.
  void (*embed_patch)(const EmbedPatchArgs&) noexcept;
  void (*layer_norm)(const LayerNormArgs&) noexcept;
  void (*bias_rope)(const BiasRopeArgs&) noexcept;
  void (*full_attention)(const FullAttentionArgs&) noexcept;
  // y[i] = bf16(gelu(x[i] + bias[i])): the exact one, and the form with tanh.
  void (*bias_gelu)(const float* x, const float* bias, bf16_t* y, std::int64_t size) noexcept;
  void (*bias_gelu_tanh)(const float* x, const float* bias, bf16_t* y, std::int64_t size) noexcept;
  // x[i] += y[i] + bias[i].
  void (*add_with_bias)(float* x, const float* y, const float* bias, std::int64_t size) noexcept;
};

// Layout work and scalar formulas that need no vector form: the same code under every table.

// Packs rows [row, row + rows) of w [n, k] (row-major bf16) into `packed`, which was zero.
void pack_rows(const bf16_t* w, std::int64_t row, std::int64_t rows, std::int64_t k,
               bf16_t* packed);

// Puts up to 16 rows of activations [rows][k_steps * 32] into the k_steps tiles at `tiles`.
void tile_rows(const bf16_t* x, std::int64_t rows, std::int64_t k_steps, bf16_t* tiles);

// Stores one token's key or value (bf16, head_dim values) of one KV head at index `slot` of a
// block.
void kv_store(const bf16_t* k, const float* v, std::int64_t slot, const KvBlockLayout& layout,
              bf16_t* head);

// Stores key rows as tail rows m0 .. m0 + n - 1.
void gdn_append_keys(const bf16_t* k, std::int64_t m0, std::int64_t n, std::int64_t key_dim,
                     bf16_t* tail_k);

// beta = sigmoid(b), g = -exp(A_log) * softplus(a + dt_bias); decay_rate = -exp(A_log).
void gdn_gates(const float* a, const float* b, const float* decay_rate, const float* dt_bias,
               float* g, float* beta, std::int64_t heads);

}  // namespace sluice::kernels
