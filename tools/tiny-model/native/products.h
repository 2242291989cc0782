// Small matrix products with AMX or, where the machine has none, AVX-512, and vector functions, for the trainer.
//
// gemm: C[M,N] fp32 (+)= A[M,K] . B[K,N], A bf16 row-major, B "paired": [K/2][N][2], so that one 32-bit
// lane holds rows 2i and 2i+1 of a column.  All sizes are multiples of 32.  Everything is for one thread.
#pragma once

#include <immintrin.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdint>
#include <cstring>
#include <initializer_list>

using bf16 = std::uint16_t;
using V = __m512;

inline V load(const float* p) { return _mm512_loadu_ps(p); }
inline void store(float* p, V x) { _mm512_storeu_ps(p, x); }
inline V all(float x) { return _mm512_set1_ps(x); }
inline V fma(V a, V b, V c) { return _mm512_fmadd_ps(a, b, c); }
inline V load(const bf16* p) {
  return _mm512_castsi512_ps(
      _mm512_slli_epi32(_mm512_cvtepu16_epi32(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p))), 16));
}
inline void store(bf16* p, V x) {
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), (__m256i)_mm512_cvtneps_pbh(x));
}
inline float sum(V x) { return _mm512_reduce_add_ps(x); }
inline float to_float(bf16 x) {
  std::uint32_t bits = std::uint32_t{x} << 16;
  float f;
  std::memcpy(&f, &bits, 4);
  return f;
}
inline bf16 to_bf16(float f) {
  std::uint32_t bits;
  std::memcpy(&bits, &f, 4);
  return bf16((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
}

inline V exp(V x) {  // relative error about 2e-7; exact zeros below -87 do not matter here
  x = _mm512_min_ps(_mm512_max_ps(x, all(-87.f)), all(88.f));
  const V n = _mm512_roundscale_ps(_mm512_mul_ps(x, all(1.44269504f)), 0);
  const V r = fma(n, all(-1.42860677e-6f), fma(n, all(-0.693145752f), x));
  V y = all(1.f / 720);
  for (float c : {1.f / 120, 1.f / 24, 1.f / 6, 0.5f, 1.f, 1.f}) y = fma(y, r, all(c));
  return _mm512_scalef_ps(y, n);
}
inline V sigmoid(V x) {  // relative error below 1e-4: results are rounded to bf16
  const V n = _mm512_roundscale_ps(_mm512_mul_ps(x, all(-1.44269504f)), 0);
  const V r = fma(n, all(-0.693147182f), _mm512_sub_ps(_mm512_setzero_ps(), x));
  V y = all(1.f / 24);
  for (float c : {1.f / 6, 0.5f, 1.f, 1.f}) y = fma(y, r, all(c));
  return _mm512_rcp14_ps(_mm512_add_ps(all(1.f), _mm512_scalef_ps(y, n)));
}

// Asks for n values some rows before they are used: rows lie too far apart for the hardware to see them coming.
inline void fetch(const bf16* p, int n) {
  for (int i = 0; i < n; i += 32) _mm_prefetch(reinterpret_cast<const char*>(p + i), _MM_HINT_T0);
}
inline void fetch_to_write(bf16* p, int n) {
  for (int i = 0; i < n; i += 32) __builtin_prefetch(p + i, 1);
}

#ifdef __AMX_BF16__
// ---------------------------------------------------------------------------------------------- tiles

struct alignas(64) TileConfig {
  std::uint8_t palette = 1, start = 0, reserved[14] = {};
  std::uint16_t row_bytes[16] = {64, 64, 64, 64, 64, 64, 64, 64};
  std::uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
};

// Holds the tile registers for one call; the compiler must not move tile code out of its scope.
struct Tiles {
  Tiles() {
    static const bool granted = syscall(SYS_arch_prctl, 0x1023, 18) == 0;
    if (!granted) __builtin_trap();
    static const TileConfig config;
    _tile_loadconfig(&config);
  }
  ~Tiles() { _tile_release(); }
};

template <int M, int N, bool accumulate>
inline void gemm_of(float* C, int ldc, const bf16* A, int lda, const bf16* B, int ldb, int K) {
  asm volatile("" ::: "memory");  // GCC's tile loads do not say that they read memory
  for (int n = 0; n < N; n += 32)
    for (int m = 0; m < M; m += 32) {
      float* c0 = C + m * ldc + n;
      float* c1 = c0 + 16 * ldc;
      if (accumulate) {
        _tile_loadd(0, c0, ldc * 4);
        _tile_loadd(1, c0 + 16, ldc * 4);
        _tile_loadd(2, c1, ldc * 4);
        _tile_loadd(3, c1 + 16, ldc * 4);
      } else {
        _tile_zero(0);
        _tile_zero(1);
        _tile_zero(2);
        _tile_zero(3);
      }
      for (int k = 0; k < K; k += 32) {
        const bf16* a = A + m * lda + k;
        const bf16* b = B + (k / 2) * ldb + n * 2;
        _tile_loadd(4, a, lda * 2);
        _tile_loadd(6, b, ldb * 2);
        _tile_loadd(5, a + 16 * lda, lda * 2);
        _tile_loadd(7, b + 32, ldb * 2);
        _tile_dpbf16ps(0, 4, 6);
        _tile_dpbf16ps(1, 4, 7);
        _tile_dpbf16ps(2, 5, 6);
        _tile_dpbf16ps(3, 5, 7);
      }
      _tile_stored(0, c0, ldc * 4);
      _tile_stored(1, c0 + 16, ldc * 4);
      _tile_stored(2, c1, ldc * 4);
      _tile_stored(3, c1 + 16, ldc * 4);
    }
}

#else

// Without AMX, in fp32, which is faster than AVX-512's bf16 product.
struct Tiles {
  Tiles() {}
};

template <int M, int N, bool accumulate>
inline void gemm_of(float* C, int ldc, const bf16* A, int lda, const bf16* B, int ldb, int K) {
  constexpr int kRows = 8, kDepth = 256;  // of A, widened once for all columns
  alignas(64) float a[kRows * kDepth];
  for (int from = 0; from < K; from += kDepth) {
    const int depth = K - from < kDepth ? K - from : kDepth;
    for (int m = 0; m < M; m += kRows) {
      for (int r = 0; r < kRows; ++r)
        for (int k = 0; k < depth; k += 16) store(a + r * kDepth + k, load(A + (m + r) * lda + from + k));
      for (int n = 0; n < N; n += 32) {
        V sums[kRows][2];
        for (int r = 0; r < kRows; ++r)
          for (int j = 0; j < 2; ++j)
            sums[r][j] = accumulate || from ? load(C + (m + r) * ldc + n + 16 * j) : _mm512_setzero_ps();
        const bf16* b = B + from / 2 * ldb + n * 2;
        for (int k = 0; k < depth; k += 2, b += ldb) {
          V even[2], odd[2];
          for (int j = 0; j < 2; ++j) {
            const __m512i pairs = _mm512_loadu_si512(b + 32 * j);
            even[j] = _mm512_castsi512_ps(_mm512_slli_epi32(pairs, 16));
            odd[j] = _mm512_castsi512_ps(_mm512_and_si512(pairs, _mm512_set1_epi32(int(0xffff0000))));
          }
#pragma GCC unroll 8
          for (int r = 0; r < kRows; ++r) {
            const V x = all(a[r * kDepth + k]), y = all(a[r * kDepth + k + 1]);
            for (int j = 0; j < 2; ++j) sums[r][j] = fma(y, odd[j], fma(x, even[j], sums[r][j]));
          }
        }
        for (int r = 0; r < kRows; ++r)
          for (int j = 0; j < 2; ++j) store(C + (m + r) * ldc + n + 16 * j, sums[r][j]);
      }
    }
  }
}

#endif

template <int M, int N, int K, bool accumulate = false>
inline void gemm(float* C, int ldc, const bf16* A, int lda, const bf16* B, int ldb) {
  gemm_of<M, N, accumulate>(C, ldc, A, lda, B, ldb, K);
}
