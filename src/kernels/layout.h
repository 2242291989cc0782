// Memory layouts that kernels, packer and cache share. Sizes are in elements unless a name says
// bytes.
//
// Packed product operand ("panels"), for W[N,K] in x[M,K] . W[N,K]^T, bf16:
//
//   [N/32 panels][K/32 steps][2 halves of 16 columns][16 pairs of k][16 columns][2]
//                            \___________________ one 1 KB AMX tile, VNNI order ______/
//
// N and K are rounded up to 32, the padding is zero: it adds exact zeros to every sum.
// Weights, the KV cache, the delta-rule state and its tail all use this one layout, so one product
// routine per instruction set serves them all.
#pragma once

#include <cstddef>
#include <cstdint>

#include "tensor/scalar.h"

namespace sluice::kernels {

// Version of the numerics contract (docs/NUMERICS.md). Any change of a bit is a new version: states
// and caches of another version are worthless.
inline constexpr int kNumericsVersion = 1;

inline constexpr std::int64_t kPanelColumns = 32;
inline constexpr std::int64_t kStepK = 32;          // K elements of one canonical step
inline constexpr std::int64_t kTileElements = 512;  // one half panel of one step
inline constexpr std::int64_t kStepElements = 2 * kTileElements;

constexpr std::int64_t pad32(std::int64_t n) {
  return (n + 31) / 32 * 32;
}

constexpr std::int64_t packed_elements(std::int64_t n, std::int64_t k) {
  return pad32(n) * pad32(k);
}

// Index of element (column n, k) of a packed operand with `steps` = pad32(K) / 32.
constexpr std::int64_t packed_index(std::int64_t n, std::int64_t k, std::int64_t steps) {
  return ((n / 32 * steps + k / 32) * 2 + n % 32 / 16) * kTileElements + k % 32 / 2 * 32 +
         n % 16 * 2 + k % 2;
}

// ---- Activations of products lie in tiles: [rows / 16][K/32 steps][16 rows][32 k] bf16, a tile as
// large as one of weights. Of the last tile's rows beyond the end nothing is used.
inline constexpr std::int64_t kRowsOfTile = 16;
constexpr std::int64_t row_tiles_elements(std::int64_t rows, std::int64_t k) {
  return (rows + kRowsOfTile - 1) / kRowsOfTile * kRowsOfTile * pad32(k);
}
// Of the first 32 k of a row; the next 32 are kTileElements on.
constexpr std::int64_t row_offset(std::int64_t row, std::int64_t steps) {
  return row / 16 * steps * kTileElements + row % 16 * kStepK;
}

// ---- KV block of one layer: kAttentionBlock tokens at absolute positions. Per KV head:
//   K: packed with N = key index in the block, K = head channel
//   V: packed with N = head channel,           K = key index in the block
inline constexpr std::int64_t kAttentionBlock = 64;
inline constexpr std::int64_t kAttentionSegment = 1024;  // keys summed separately, then merged

struct KvBlockLayout {
  std::int64_t head_dim;

  constexpr std::int64_t k_elements() const { return packed_elements(kAttentionBlock, head_dim); }
  constexpr std::int64_t v_elements() const { return packed_elements(head_dim, kAttentionBlock); }
  constexpr std::int64_t head_elements() const { return k_elements() + v_elements(); }
  constexpr std::int64_t bytes(std::int64_t kv_heads) const {
    return kv_heads * head_elements() * static_cast<std::int64_t>(sizeof(bf16_t));
  }
};

// ---- Recurrent state of one layer, contract GDN-AMX2 (docs/NUMERICS.md): the state S [key, value]
// at the last multiple of 32 tokens as bf16 planes hi + lo, and the tail of rows since then.
//   per key head:   tail_k  packed, N = tail row (32), K = key channel
//   per value head: plane lo, plane hi: packed, N = value channel, K = key channel (bf16)
//                   tail_u  [32][pad32(value dim)] fp32
//                   tail_g  [32] fp64, cumulative log decay since the anchor
//   conv rows:      [3][channels] bf16, oldest first
inline constexpr std::int64_t kGdnChunk = 32;
inline constexpr std::int64_t kConvTaps = 4;
inline constexpr std::int64_t kGdnHeadDimMax = 256;

struct GdnStateLayout {
  std::int64_t key_dim;    // per head
  std::int64_t value_dim;  // per head

  constexpr std::int64_t plane_elements() const { return packed_elements(value_dim, key_dim); }
  constexpr std::int64_t tail_k_bytes() const {
    return packed_elements(kGdnChunk, key_dim) * static_cast<std::int64_t>(sizeof(bf16_t));
  }
  constexpr std::int64_t tail_u_offset() const {
    return 2 * plane_elements() * static_cast<std::int64_t>(sizeof(bf16_t));
  }
  constexpr std::int64_t tail_g_offset() const {
    return tail_u_offset() +
           kGdnChunk * pad32(value_dim) * static_cast<std::int64_t>(sizeof(float));
  }
  constexpr std::int64_t value_head_bytes() const {
    return tail_g_offset() + kGdnChunk * static_cast<std::int64_t>(sizeof(double));
  }
};

// Rows in the tail after `position` tokens: 0 only at the very start, else 1..32. A full tail of 32
// stays until the next row comes (the fold is lazy, so that rejected draft rows can be dropped).
constexpr std::int64_t gdn_tail_rows(std::int64_t position) {
  return position == 0 ? 0 : (position - 1) % kGdnChunk + 1;
}

}  // namespace sluice::kernels
