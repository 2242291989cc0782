// One chunk of a gated-delta layer for one key head: what the forward and the backward pass both need.
//
// Names as in reference.py.  Layouts: projections p[B x T][kWidth] = per key head [q 128 | k 128 | v 2x128 |
// z 2x128], then b 4, a 4; conv[4][1024] with the channels in that order, states [B][4][chunks][128 key][128
// value] at the start of every chunk.
#pragma once

#include "packing.h"

constexpr int C = 64, D = 128, kKeyHeads = 2, kHeads = 4, kRepeat = 2, kTaps = 4;
constexpr int kOwn = 2 * D + kRepeat * D;    // channels of one key head: q, k, its values
constexpr int kMix = kKeyHeads * kOwn;
constexpr int kHead = kOwn + kRepeat * D;    // those and the gates z
constexpr int kBeta = kKeyHeads * kHead, kDecay = kBeta + kHeads, kWidth = kDecay + kHeads;
constexpr int kAhead = 6;                    // rows
constexpr int kRow = kOwn + 16;              // a row of channels: 2048 bytes apart they would share two cache sets

struct Parameters {
  const float *conv, *A_log, *dt_bias, *norm;
};

struct alignas(64) KeyHead {
  float u[C + kTaps - 1][kRow];  // inputs of the convolution, three rows of the past first
  float m[C][kRow];              // after convolution and silu
  float rq[C], rk[C];            // 1 / length
  bf16 q[C * D], k[C * D];       // unit length; q over sqrt(128)
  bf16 kt[D * C], kT[D * C];     // k transposed, paired and plain
  float qk[C * C], kk[C * C];

  // p: projections of this key head from the sequence's first token; before: the three rows of inputs in
  // front of it, or null for zeros.
  void read(const bf16* p, const bf16* before, int t0, const float* conv) {
    for (int t = 0; t < C + kTaps - 1; ++t) {
      const int row = t0 + t - (kTaps - 1);
      const bf16* source = row >= 0 ? p + std::int64_t{row} * kWidth
                           : before ? before + (row + kTaps - 1) * kMix
                                    : nullptr;
      fetch(p + std::int64_t{row + kAhead} * kWidth, kOwn);
      for (int i = 0; i < kOwn; i += 16) store(u[t] + i, source ? load(source + i) : _mm512_setzero_ps());
    }
    for (int t = 0; t < C; ++t)
      for (int i = 0; i < kOwn; i += 16) {
        const V x = convolved(t, i, conv + i);
        store(m[t] + i, _mm512_mul_ps(x, sigmoid(x)));
      }
    const float scale = 0.08838834764831845f;  // 128^-1/2
    for (int t = 0; t < C; ++t) {
      rq[t] = unit(q + t * D, m[t], scale);
      rk[t] = unit(k + t * D, m[t] + D, 1.f);
    }
    pack_transposed<C, D>(kt, k, D);
    unpair<D, C>(kT, kt);
    gemm<C, C, D>(qk, C, q, D, kt, 2 * C);
    gemm<C, C, D>(kk, C, k, D, kt, 2 * C);
  }

  V convolved(int t, int i, const float* conv) const {
    V x = _mm512_mul_ps(load(u[t] + i), load(conv));
    for (int j = 1; j < kTaps; ++j) x = fma(load(u[t + j] + i), load(conv + j * kMix), x);
    return x;
  }

  static float unit(bf16* to, const float* from, float scale) {
    V s = _mm512_setzero_ps();
    for (int i = 0; i < D; i += 16) s = fma(load(from + i), load(from + i), s);
    const float r = 1.f / __builtin_sqrtf(sum(s) + 1e-6f);
    for (int i = 0; i < D; i += 16) store(to + i, _mm512_mul_ps(load(from + i), all(r * scale)));
    return r;
  }
};

struct alignas(64) ValueHead {
  float a[C], beta[C], g[C], rise[C], fall[C], end;
  float decay[C * C], inverse[C * C];
  bf16 A[C * C], T[C * C];
  bf16 state[D * D];                  // paired along keys
  bf16 xp[C * D], np[C * D];          // X and N, paired along tokens
  float x[C * D], n[C * D], o[C * D];

  // v: this head's first value channel in KeyHead::m.  S: fp32 state before the chunk.
  void run(const KeyHead& key, const bf16* p, int head, int v, const Parameters& w) {
    gates(p, head, w);
    matrices(key);
    gemm<C, D, D>(x, D, key.k, D, state, 2 * D);
    for (int t = 0; t < C; ++t)
      for (int i = 0; i < D; i += 16)
        store(x + t * D + i, fma(load(x + t * D + i), all(-rise[t]), load(key.m[t] + v + i)));
    pack<C, D>(xp, x, D);
    gemm<C, D, C>(n, D, T, C, xp, 2 * D);
    pack<C, D>(np, n, D);
    gemm<C, D, D>(o, D, key.q, D, state, 2 * D);
    for (int t = 0; t < C; ++t)
      for (int i = 0; i < D; i += 16) store(o + t * D + i, _mm512_mul_ps(load(o + t * D + i), all(rise[t])));
    gemm<C, D, C, true>(o, D, A, C, np, 2 * D);
  }

  void gates(const bf16* p, int head, const Parameters& w) {
    const float rate = -__builtin_expf(w.A_log[head]);
    float total = 0;
    for (int t = 0; t < C; ++t) {
      a[t] = to_float(p[std::int64_t{t} * kWidth + kDecay + head]) + w.dt_bias[head];
      beta[t] = 1.f / (1.f + __builtin_expf(-to_float(p[std::int64_t{t} * kWidth + kBeta + head])));
      g[t] = rate * (a[t] > 20.f ? a[t] : __builtin_log1pf(__builtin_expf(a[t])));
      total += g[t];
      rise[t] = total;
    }
    for (int t = 0; t < C; ++t) {
      fall[t] = __builtin_expf(total - rise[t]);
      for (int j = 0; j < C; j += 16) {
        const __mmask16 seen = t - j >= 15 ? 0xffff : t < j ? 0 : (2u << (t - j)) - 1;
        store(decay + t * C + j, _mm512_maskz_mov_ps(seen, exp(_mm512_sub_ps(all(rise[t]), load(rise + j)))));
      }
    }
    for (int t = 0; t < C; ++t) rise[t] = __builtin_expf(rise[t]);
    end = rise[C - 1];
  }

  // A, and by substitution the rows of (I + L)^-1.
  void matrices(const KeyHead& key) {
    for (int t = 0; t < C; ++t) {
      float row[C];
      for (int j = 0; j < C; j += 16) {
        const V d = load(decay + t * C + j);
        store(A + t * C + j, _mm512_mul_ps(load(key.qk + t * C + j), d));
        store(row + j, _mm512_mul_ps(_mm512_mul_ps(load(key.kk + t * C + j), d), all(-beta[t])));
      }
      V s[4] = {};
      for (int j = 0; j < t; ++j)
        for (int i = 0; i < 4; ++i) s[i] = fma(all(row[j]), load(inverse + j * C + 16 * i), s[i]);
      for (int i = 0; i < 4; ++i) {
        store(inverse + t * C + 16 * i, s[i]);
        if (t / 16 == i) inverse[t * C + t] += 1.f;
      }
      for (int i = 0; i < 4; ++i)
        store(T + t * C + 16 * i, _mm512_mul_ps(load(inverse + t * C + 16 * i), load(beta + 16 * i)));
    }
  }
};
