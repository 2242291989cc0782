// Causal attention of two query heads on one key/value head of 256, forward and gradient, in blocks.
//
// One sequence: q, o, do[rows][2][256], k[keys][256], v[keys][v_stride], at[rows] ascending: row r sees keys
// 0..at[r].  rows and keys are multiples of 64.  A block of n rows is a matrix of 2n rows, head by head inside
// a row.  sums, dsums: log of the sum of exponentials, per row and head, and its gradient.
#include <cmath>
#include <memory>

#include "packing.h"

namespace {

constexpr int kHeads = 2, D = 256, kKeys = 64;
constexpr int kForwardRows = 128, kRows = 64;  // of a block's matrix
constexpr int kGroup = 4;                      // blocks of keys that meet a block of rows while it is in the cache
constexpr float kScale = 1.f / 16;

// Not zeroed, unlike a vector.
template <class T>
std::unique_ptr<T[]> space(std::int64_t n) {
  return std::unique_ptr<T[]>(new T[n]);
}

// Which of 16 keys from `key` on the row sees.
__mmask16 seen(int at, int key) {
  const int n = at - key + 1;
  return n >= 16 ? 0xffff : n <= 0 ? 0 : (1u << n) - 1;
}

struct alignas(64) Forward {
  float s[kForwardRows * kKeys], o[kForwardRows * D], top[kForwardRows], total[kForwardRows];
  bf16 p[kForwardRows * kKeys];

  void start() {
    std::memset(o, 0, sizeof o);
    for (int i = 0; i < kForwardRows; ++i) top[i] = -1e30f, total[i] = 0;
  }

  void add(const bf16* q, const bf16* kt, const bf16* vp, const int* at, int key) {
    gemm<kForwardRows, kKeys, D>(s, kKeys, q, D, kt, 2 * kKeys);
    for (int i = 0; i < kForwardRows; ++i) {
      V x[4], most = all(top[i]);
      for (int j = 0; j < 4; ++j) {
        const V score = _mm512_mul_ps(load(s + i * kKeys + 16 * j), all(kScale));
        x[j] = _mm512_mask_mov_ps(all(-1e30f), seen(at[i / kHeads], key + 16 * j), score);
        most = _mm512_max_ps(most, x[j]);
      }
      const float now = _mm512_reduce_max_ps(most);
      if (now > top[i]) {
        const float shrink = std::exp(top[i] - now);
        for (int j = 0; j < D; j += 16) store(o + i * D + j, _mm512_mul_ps(load(o + i * D + j), all(shrink)));
        total[i] *= shrink;
        top[i] = now;
      }
      V added = _mm512_setzero_ps();
      for (int j = 0; j < 4; ++j) {
        const V e = _mm512_maskz_mov_ps(seen(at[i / kHeads], key + 16 * j), exp(_mm512_sub_ps(x[j], all(now))));
        store(p + i * kKeys + 16 * j, e);
        added = _mm512_add_ps(added, e);
      }
      total[i] += sum(added);
    }
    gemm<kForwardRows, D, kKeys, true>(o, D, p, kKeys, vp, 2 * D);
  }

  void finish(bf16* to, float* sums) {
    for (int i = 0; i < kForwardRows; ++i) {
      for (int j = 0; j < D; j += 16) store(to + i * D + j, _mm512_mul_ps(load(o + i * D + j), all(1.f / total[i])));
      sums[i] = top[i] + std::log(total[i]);
    }
  }
};

// A block of rows as the gradient wants it.
struct alignas(64) Rows {
  bf16 qt[D * kRows], qp[kRows * D], dot[D * kRows], dop[kRows * D];
  float delta[kRows], sums[kRows];
  int at[kRows], last;

  void set(const bf16* q, const bf16* o, const bf16* d, const float* log_sums, const float* dsums, const int* see) {
    pack_transposed<kRows, D>(qt, q, D);
    pack<kRows, D>(qp, q, D);
    pack_transposed<kRows, D>(dot, d, D);
    pack<kRows, D>(dop, d, D);
    for (int i = 0; i < kRows; ++i) {
      V product = _mm512_setzero_ps();
      for (int j = 0; j < D; j += 16) product = fma(load(o + i * D + j), load(d + i * D + j), product);
      delta[i] = sum(product) - dsums[i];
      sums[i] = log_sums[i];
      at[i] = see[i / kHeads];
    }
    last = at[kRows - 1];
  }
};

struct alignas(64) Backward {
  float s[kKeys * kRows], dp[kKeys * kRows];
  bf16 p[kKeys * kRows], ds[kKeys * kRows], paired[kRows * kKeys], turned[kRows * kKeys];
  struct Sums {
    float dk[kKeys * D], dv[kKeys * D];
    bf16 kp[kKeys * D];
  } sums[kGroup];

  // Everything is turned: rows of these matrices are keys, columns are query rows.
  void add(const Rows& r, const bf16* k, const bf16* v, int v_stride, int key, Sums& to, float* dq) {
    gemm<kKeys, kRows, D>(s, kRows, k, D, r.qt, 2 * kRows);
    gemm<kKeys, kRows, D>(dp, kRows, v, v_stride, r.dot, 2 * kRows);
    for (int j = 0; j < kKeys; ++j)
      for (int i = 0; i < kRows; i += 16) {
        const __mmask16 sees = _mm512_cmpge_epi32_mask(_mm512_loadu_si512(r.at + i), _mm512_set1_epi32(key + j));
        const V score = _mm512_sub_ps(_mm512_mul_ps(load(s + j * kRows + i), all(kScale)), load(r.sums + i));
        const V e = _mm512_maskz_mov_ps(sees, exp(score));
        store(p + j * kRows + i, e);
        store(ds + j * kRows + i, _mm512_mul_ps(_mm512_mul_ps(e, all(kScale)),
                                                _mm512_sub_ps(load(dp + j * kRows + i), load(r.delta + i))));
      }
    gemm<kKeys, D, kRows, true>(to.dv, D, p, kRows, r.dop, 2 * D);
    gemm<kKeys, D, kRows, true>(to.dk, D, ds, kRows, r.qp, 2 * D);
    pack_transposed<kKeys, kRows>(paired, ds, kRows);
    unpair<kRows, kKeys>(turned, paired);
    gemm<kRows, D, kKeys, true>(dq, D, turned, kKeys, to.kp, 2 * D);
  }
};

}  // namespace

extern "C" void attention_forward(const bf16* q, const bf16* k, const bf16* v, std::int64_t v_stride, const int* at,
                                  bf16* o, float* sums, std::int64_t rows, std::int64_t keys) {
  static Forward work;
  const Tiles tiles;
  const auto kt = space<bf16>(keys * D), vp = space<bf16>(keys * D);
  for (std::int64_t key = 0; key < keys; key += kKeys) {
    pack_transposed<kKeys, D>(&kt[key * D], k + key * D, D);
    pack<kKeys, D>(&vp[key * D], v + key * v_stride, int(v_stride));
  }
  for (std::int64_t row = 0; row < rows; row += kForwardRows / kHeads) {
    const std::int64_t i = row * kHeads;
    work.start();
    for (int key = 0; key <= at[row + kForwardRows / kHeads - 1]; key += kKeys)
      work.add(q + i * D, &kt[std::int64_t{key} * D], &vp[std::int64_t{key} * D], at + row, key);
    work.finish(o + i * D, sums + i);
  }
}

// dq is zero on entry; all three are fp32, [rows][2][256] and [keys][256].
extern "C" void attention_backward(const bf16* q, const bf16* k, const bf16* v, std::int64_t v_stride, const int* at,
                                   const bf16* o, const float* sums, const bf16* dout, const float* dsums, float* dq,
                                   float* dk, float* dv, std::int64_t rows, std::int64_t keys) {
  static Backward work;
  const Tiles tiles;
  const std::int64_t blocks = rows * kHeads / kRows;
  const auto packed = space<Rows>(blocks);
  for (std::int64_t b = 0; b < blocks; ++b) {
    const std::int64_t i = b * kRows;
    packed[b].set(q + i * D, o + i * D, dout + i * D, sums + i, dsums + i, at + i / kHeads);
  }
  for (std::int64_t from = 0; from < keys; from += kKeys * kGroup) {
    const int group = int(keys - from < kKeys * kGroup ? (keys - from) / kKeys : kGroup);
    for (int g = 0; g < group; ++g) {
      Backward::Sums& sum = work.sums[g];
      std::memset(sum.dk, 0, sizeof sum.dk + sizeof sum.dv);
      pack<kKeys, D>(sum.kp, k + (from + g * kKeys) * D, D);
    }
    for (std::int64_t b = 0; b < blocks; ++b)
      for (int g = 0; g < group; ++g) {
        const std::int64_t key = from + g * kKeys;
        if (packed[b].last >= key)
          work.add(packed[b], k + key * D, v + key * v_stride, int(v_stride), int(key), work.sums[g],
                   dq + b * kRows * D);
      }
    for (int g = 0; g < group; ++g) {
      std::memcpy(dk + (from + g * kKeys) * D, work.sums[g].dk, sizeof work.sums[g].dk);
      std::memcpy(dv + (from + g * kKeys) * D, work.sums[g].dv, sizeof work.sums[g].dv);
    }
  }
}
