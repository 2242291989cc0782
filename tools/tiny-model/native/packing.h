// The forms that products want of matrices: rounded, paired, turned.  Paired: see products.h.
#pragma once

#include "products.h"

inline __m512i pair(V row0, V row1) {
  alignas(64) static constexpr std::uint16_t order[32] = {0, 16, 1, 17, 2,  18, 3,  19, 4,  20, 5,  21, 6,  22, 7,  23,
                                                          8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31};
  return _mm512_permutexvar_epi16(_mm512_load_si512(order), (__m512i)_mm512_cvtne2ps_pbh(row1, row0));
}

// dst[K/2][N][2] = src[K][N], rows multiplied by scale[K] where given.
template <int K, int N, class T>
inline void pack(bf16* dst, const T* src, int lds, const float* scale = nullptr) {
  for (int k = 0; k < K; k += 2)
    for (int n = 0; n < N; n += 16) {
      V a = load(src + k * lds + n), b = load(src + (k + 1) * lds + n);
      if (scale) a = _mm512_mul_ps(a, all(scale[k])), b = _mm512_mul_ps(b, all(scale[k + 1]));
      _mm512_storeu_si512(dst + k * N + n * 2, pair(a, b));
    }
}

// dst[R][N] = src[R][N] rounded.
template <int R, int N>
inline void round_to(bf16* dst, const float* src, int lds) {
  for (int r = 0; r < R; ++r)
    for (int n = 0; n < N; n += 16) store(dst + r * N + n, load(src + r * lds + n));
}

inline void transpose16x16(__m512i r[16]) {
  __m512i t[16];
  for (int i = 0; i < 8; ++i) {
    t[2 * i] = _mm512_unpacklo_epi32(r[2 * i], r[2 * i + 1]);
    t[2 * i + 1] = _mm512_unpackhi_epi32(r[2 * i], r[2 * i + 1]);
  }
  for (int i = 0; i < 4; ++i) {
    r[4 * i] = _mm512_unpacklo_epi64(t[4 * i], t[4 * i + 2]);
    r[4 * i + 1] = _mm512_unpackhi_epi64(t[4 * i], t[4 * i + 2]);
    r[4 * i + 2] = _mm512_unpacklo_epi64(t[4 * i + 1], t[4 * i + 3]);
    r[4 * i + 3] = _mm512_unpackhi_epi64(t[4 * i + 1], t[4 * i + 3]);
  }
  for (int i = 0; i < 4; ++i) {
    t[i] = _mm512_shuffle_i32x4(r[i], r[4 + i], 0x88);
    t[4 + i] = _mm512_shuffle_i32x4(r[8 + i], r[12 + i], 0x88);
    t[8 + i] = _mm512_shuffle_i32x4(r[i], r[4 + i], 0xdd);
    t[12 + i] = _mm512_shuffle_i32x4(r[8 + i], r[12 + i], 0xdd);
  }
  for (int i = 0; i < 4; ++i) {
    r[i] = _mm512_shuffle_i32x4(t[i], t[4 + i], 0x88);
    r[8 + i] = _mm512_shuffle_i32x4(t[i], t[4 + i], 0xdd);
    r[4 + i] = _mm512_shuffle_i32x4(t[8 + i], t[12 + i], 0x88);
    r[12 + i] = _mm512_shuffle_i32x4(t[8 + i], t[12 + i], 0xdd);
  }
}

// The paired form of the transpose of src[N][K]: dst[K/2][N][2].
template <int N, int K>
inline void pack_transposed(bf16* dst, const bf16* src, int lds) {
  __m512i r[16];
  for (int n = 0; n < N; n += 16)
    for (int k = 0; k < K; k += 32) {
      for (int i = 0; i < 16; ++i) r[i] = _mm512_loadu_si512(src + (n + i) * lds + k);
      transpose16x16(r);
      for (int i = 0; i < 16; ++i) _mm512_storeu_si512(dst + (k / 2 + i) * N * 2 + n * 2, r[i]);
    }
}

// dst[K][N], the plain transpose, from its paired form [K/2][N][2].
template <int K, int N>
inline void unpair(bf16* dst, const bf16* paired) {
  alignas(64) static constexpr std::uint16_t even[32] = {0,  2,  4,  6,  8,  10, 12, 14, 16, 18, 20,
                                                         22, 24, 26, 28, 30, 32, 34, 36, 38, 40, 42,
                                                         44, 46, 48, 50, 52, 54, 56, 58, 60, 62};
  const __m512i low = _mm512_load_si512(even), high = _mm512_add_epi16(low, _mm512_set1_epi16(1));
  for (int k = 0; k < K; k += 2)
    for (int n = 0; n < N; n += 32) {
      const __m512i a = _mm512_loadu_si512(paired + k * N + n * 2);
      const __m512i b = _mm512_loadu_si512(paired + k * N + n * 2 + 32);
      _mm512_storeu_si512(dst + k * N + n, _mm512_permutex2var_epi16(a, low, b));
      _mm512_storeu_si512(dst + (k + 1) * N + n, _mm512_permutex2var_epi16(a, high, b));
    }
}
