// The gradient of delta_forward: chunks from the last to the first, everything inside a chunk made again
// from the projections and the saved state.  dS is the gradient of the state after the chunk.
#include "delta.h"

namespace {

struct Gradients {
  bf16* p;
  float *conv, *A_log, *dt_bias, *norm;
};

struct alignas(64) KeyGradient {
  float q[C * D], k[C * D], qk[C * C], kk[C * C];  // sums over the value heads
  float m[C][kRow];
  float before_silu[C + kTaps - 1][kRow];  // the last three rows belong to the next chunk
  bf16 qp[C * D], kp[C * D], qt[C * D], qT[C * D];
  bf16 square[C * C], paired[C * C], turned[C * C];

  void start(const KeyHead& key) {
    std::memset(q, 0, sizeof q + sizeof k + sizeof qk + sizeof kk);
    pack<C, D>(qp, key.q, D);
    pack<C, D>(kp, key.k, D);
    pack_transposed<C, D>(qt, key.q, D);
    unpair<D, C>(qT, qt);
  }

  void finish(const KeyHead& key) {
    round_to<C, C>(square, qk, C);
    gemm<C, D, C, true>(q, D, square, C, kp, 2 * D);
    turn();
    gemm<C, D, C, true>(k, D, turned, C, qp, 2 * D);
    round_to<C, C>(square, kk, C);
    gemm<C, D, C, true>(k, D, square, C, kp, 2 * D);
    turn();
    gemm<C, D, C, true>(k, D, turned, C, kp, 2 * D);
    const float scale = 0.08838834764831845f;
    for (int t = 0; t < C; ++t) {
      through_unit(m[t], q + t * D, key.m[t], key.rq[t], scale);
      through_unit(m[t] + D, k + t * D, key.m[t] + D, key.rk[t], 1.f);
    }
  }

  void turn() {
    pack_transposed<C, C>(paired, square, C);
    unpair<C, C>(turned, paired);
  }

  static void through_unit(float* to, const float* dy, const float* m, float r, float scale) {
    V dot = _mm512_setzero_ps();
    for (int i = 0; i < D; i += 16) dot = fma(load(dy + i), load(m + i), dot);
    const V along = all(-sum(dot) * r * r * r * scale);
    for (int i = 0; i < D; i += 16)
      store(to + i, fma(load(m + i), along, _mm512_mul_ps(load(dy + i), all(r * scale))));
  }

  // Through silu and the convolution, to the projections p of the chunk; 64 channels at a time.
  void write(const KeyHead& key, bool last, const float* conv, bf16* p, float* dconv) {
    constexpr int kVectors = 4;
    for (int from = 0; from < kOwn; from += 16 * kVectors) {
      for (int t = C; t < C + kTaps - 1; ++t)
        for (int i = from; i < from + 16 * kVectors; i += 16)
          store(before_silu[t] + i, last ? _mm512_setzero_ps() : load(before_silu[t - C] + i));
      V taps[kTaps][kVectors] = {};
      for (int t = 0; t < C; ++t)
        for (int n = 0; n < kVectors; ++n) {
          const int i = from + 16 * n;
          const V x = key.convolved(t, i, conv + i), s = sigmoid(x);
          const V slope = fma(_mm512_mul_ps(x, s), _mm512_sub_ps(all(1.f), s), s);
          const V d = _mm512_mul_ps(load(m[t] + i), slope);
          store(before_silu[t] + i, d);
          for (int j = 0; j < kTaps; ++j) taps[j][n] = fma(d, load(key.u[t + j] + i), taps[j][n]);
        }
      for (int j = 0; j < kTaps; ++j)
        for (int n = 0; n < kVectors; ++n) {
          float* to = dconv + j * kMix + from + 16 * n;
          store(to, _mm512_add_ps(taps[j][n], load(to)));
        }
    }
    for (int t = 0; t < C; ++t) {
      fetch_to_write(p + std::int64_t{t + kAhead} * kWidth, kOwn);
      for (int i = 0; i < kOwn; i += 16) {
        V d = _mm512_setzero_ps();
        for (int j = 0; j < kTaps; ++j)
          d = fma(load(conv + j * kMix + i), load(before_silu[t + kTaps - 1 - j] + i), d);
        store(p + std::int64_t{t} * kWidth + i, d);
      }
    }
  }
};

struct alignas(64) ValueGradient {
  float o[C * D], n[C * D], x[C * D], m1[C * D], m2[C * D], m3[C * D];
  float A[C * C], T[C * C], h[C * C];
  float c[C], beta[C];
  bf16 ob[C * D], op[C * D], nb[C * D], nbp[C * D], xb[C * D];  // b: rounded rows, p: paired
  bf16 n_value[C * D], n_turned[C * D], x_value[C * D], x_turned[C * D];
  bf16 dS_rows[D * D], dS_paired[D * D], dS_turned[D * D], S_turned[D * D];
  bf16 square[C * C], paired[C * C], turned[C * C], inverse[C * C], inverse_paired[C * C], inverse_turned[C * C];

  void run(const KeyHead& key, const ValueHead& v, const bf16* S, float* dS, KeyGradient& sum_key) {
    round_to<C, D>(ob, o, D);
    pack<C, D>(op, o, D);
    pack<D, D>(dS_paired, dS, D);
    round_to<D, D>(dS_rows, dS, D);
    pack_transposed<D, D>(dS_turned, dS_rows, D);
    pack_transposed<D, D>(S_turned, S, D);
    pack_transposed<C, C>(paired, v.A, C);
    unpair<C, C>(turned, paired);
    round_to<C, C>(inverse, v.inverse, C);
    pack_transposed<C, C>(inverse_paired, inverse, C);
    unpair<C, C>(inverse_turned, inverse_paired);
    to_n_and_x(key, v);
    to_matrices(v);
    to_keys(key, v, S, dS, sum_key);
    to_state(key, v, dS, sum_key);
  }

  void to_n_and_x(const KeyHead& key, const ValueHead& v) {
    gemm<C, D, D>(n, D, key.k, D, dS_paired, 2 * D);
    scale_rows(n, v.fall);
    gemm<C, D, C, true>(n, D, turned, C, op, 2 * D);
    round_to<C, D>(nb, n, D);
    pack<C, D>(nbp, n, D);
    gemm<C, D, C>(x, D, inverse_turned, C, nbp, 2 * D);
    scale_rows(x, v.beta);
    round_to<C, D>(xb, x, D);
    round_to<C, D>(n_value, v.n, D);
    pack_transposed<C, D>(n_turned, n_value, D);
    round_to<C, D>(x_value, v.x, D);
    pack_transposed<C, D>(x_turned, x_value, D);
  }

  // A, T and, through the inverse, L: gradients of q k', k k', beta and c.
  void to_matrices(const ValueHead& v) {
    gemm<C, C, D>(A, C, ob, D, n_turned, 2 * C);
    gemm<C, C, D>(T, C, nb, D, x_turned, 2 * C);
    V by_column[4] = {};
    for (int i = 0; i < C; ++i)
      for (int j = 0; j < 4; ++j) {
        const V d = load(T + i * C + 16 * j);
        by_column[j] = fma(d, load(v.inverse + i * C + 16 * j), by_column[j]);
        store(square + i * C + 16 * j, _mm512_mul_ps(d, load(v.beta + 16 * j)));
      }
    for (int j = 0; j < 4; ++j) store(beta + 16 * j, by_column[j]);
    gemm<C, C, C>(h, C, square, C, inverse_paired, 2 * C);
    pack<C, C>(paired, h, C);
    gemm<C, C, C>(h, C, inverse_turned, C, paired, 2 * C);
  }

  void to_keys(const KeyHead& key, const ValueHead& v, const bf16* S, const float* dS, KeyGradient& to) {
    V by_column[4] = {};
    for (int i = 0; i < C; ++i) {
      V by_beta = _mm512_setzero_ps(), by_row = _mm512_setzero_ps();
      for (int j = 0; j < 4; ++j) {
        const int at = i * C + 16 * j, gap = i - 16 * j;
        const __mmask16 below = gap >= 16 ? 0xffff : gap <= 0 ? 0 : (1u << gap) - 1;
        const V decay = load(v.decay + at);
        const V dL = _mm512_maskz_mul_ps(below, _mm512_sub_ps(_mm512_setzero_ps(), load(h + at)), decay);
        const V dqk = _mm512_mul_ps(load(A + at), decay);
        const V dkk = _mm512_mul_ps(dL, all(v.beta[i]));
        const V part = fma(dkk, load(key.kk + at), _mm512_mul_ps(dqk, load(key.qk + at)));
        by_beta = fma(dL, load(key.kk + at), by_beta);
        by_row = _mm512_add_ps(by_row, part);
        by_column[j] = _mm512_add_ps(by_column[j], part);
        store(to.qk + at, _mm512_add_ps(load(to.qk + at), dqk));
        store(to.kk + at, _mm512_add_ps(load(to.kk + at), dkk));
      }
      beta[i] += sum(by_beta);
      c[i] = sum(by_row);
    }
    for (int j = 0; j < 4; ++j) store(c + 16 * j, _mm512_sub_ps(load(c + 16 * j), by_column[j]));
    gemm<C, D, D>(m1, D, ob, D, S_turned, 2 * D);
    gemm<C, D, D>(m2, D, xb, D, S_turned, 2 * D);
    gemm<C, D, D>(m3, D, n_value, D, dS_turned, 2 * D);
    V product = _mm512_setzero_ps();
    for (int i = 0; i < D * D; i += 16) product = fma(load(S + i), load(dS + i), product);
    c[C - 1] += sum(product) * v.end;
    const float scale = 0.08838834764831845f;
    for (int t = 0; t < C; ++t) {
      V rising = _mm512_setzero_ps(), falling = _mm512_setzero_ps();
      for (int i = 0; i < D; i += 16) {
        const int at = t * D + i;
        const V q1 = _mm512_mul_ps(load(m1 + at), all(v.rise[t]));
        const V k2 = _mm512_mul_ps(load(m2 + at), all(-v.rise[t]));
        const V k3 = _mm512_mul_ps(load(m3 + at), all(v.fall[t]));
        const V unit_q = _mm512_mul_ps(load(key.m[t] + i), all(key.rq[t] * scale));
        const V unit_k = _mm512_mul_ps(load(key.m[t] + D + i), all(key.rk[t]));
        rising = fma(q1, unit_q, fma(k2, unit_k, rising));
        falling = fma(k3, unit_k, falling);
        store(to.q + at, _mm512_add_ps(load(to.q + at), q1));
        store(to.k + at, _mm512_add_ps(load(to.k + at), _mm512_add_ps(k2, k3)));
      }
      c[t] += sum(rising) - sum(falling);
      c[C - 1] += sum(falling);
    }
  }

  void to_state(const KeyHead& key, const ValueHead& v, float* dS, const KeyGradient& from) {
    for (int i = 0; i < D * D; i += 16) store(dS + i, _mm512_mul_ps(load(dS + i), all(v.end)));
    pack<C, D>(op, o, D, v.rise);
    gemm<D, D, C, true>(dS, D, from.qT, C, op, 2 * D);
    float minus[C];
    for (int t = 0; t < C; ++t) minus[t] = -v.rise[t];
    pack<C, D>(op, x, D, minus);
    gemm<D, D, C, true>(dS, D, key.kT, C, op, 2 * D);
  }

  static void scale_rows(float* m, const float* scale) {
    for (int t = 0; t < C; ++t)
      for (int i = 0; i < D; i += 16) store(m + t * D + i, _mm512_mul_ps(load(m + t * D + i), all(scale[t])));
  }

  // Gradients of the projections a and b of this head, A_log and dt_bias; c is the gradient of the sum of g.
  void write_gates(const ValueHead& v, int head, const Parameters& w, const Gradients& to, bf16* p) {
    const float rate = -__builtin_expf(w.A_log[head]);
    float later = 0;
    for (int t = C - 1; t >= 0; --t) {
      later += c[t];
      const float da = later * rate / (1.f + __builtin_expf(-v.a[t]));
      to.A_log[head] += later * v.g[t];
      to.dt_bias[head] += da;
      p[std::int64_t{t} * kWidth + kDecay + head] = to_bf16(da);
      p[std::int64_t{t} * kWidth + kBeta + head] = to_bf16(beta[t] * v.beta[t] * (1.f - v.beta[t]));
    }
  }
};

struct alignas(64) Work {
  KeyHead key;
  KeyGradient key_gradient;
  ValueHead value;
  ValueGradient value_gradient;
  float dS[kRepeat][D * D];
};

// From dy to do, dz and the norm's weight.
void through_gated_norm(float* to, bf16* dz, float* dnorm, const bf16* dy, const float* o, const bf16* z,
                        const float* norm) {
  V square = _mm512_setzero_ps(), dot = _mm512_setzero_ps();
  for (int i = 0; i < D; i += 16) square = fma(load(o + i), load(o + i), square);
  const float r = 1.f / __builtin_sqrtf(sum(square) / D + 1e-6f);
  for (int i = 0; i < D; i += 16) {
    const V gate = load(z + i), s = sigmoid(gate), d = load(dy + i), w = load(norm + i);
    const V normed = _mm512_mul_ps(load(o + i), all(r));
    const V open = _mm512_mul_ps(d, _mm512_mul_ps(gate, s));
    const V slope = fma(_mm512_mul_ps(gate, s), _mm512_sub_ps(all(1.f), s), s);
    store(dz + i, _mm512_mul_ps(_mm512_mul_ps(d, slope), _mm512_mul_ps(normed, w)));
    store(dnorm + i, fma(open, normed, load(dnorm + i)));
    const V e = _mm512_mul_ps(open, w);
    store(to + i, e);
    dot = fma(e, load(o + i), dot);
  }
  const V along = all(-sum(dot) * r * r * r / D);
  for (int i = 0; i < D; i += 16) store(to + i, fma(load(o + i), along, _mm512_mul_ps(load(to + i), all(r))));
}

}  // namespace

// Adds to the gradients of the parameters, writes dp.
extern "C" void delta_backward(const bf16* p, const float* conv, const float* A_log, const float* dt_bias,
                               const float* norm, const bf16* states, const bf16* dy, bf16* dp, float* dconv,
                               float* dA_log, float* ddt_bias, float* dnorm, std::int64_t B, std::int64_t T) {
  static Work work;
  const Parameters w{conv, A_log, dt_bias, norm};
  const Gradients to{dp, dconv, dA_log, ddt_bias, dnorm};
  const std::int64_t chunks = T / C;
  const Tiles tiles;
  for (std::int64_t b = 0; b < B; ++b)
    for (int h = 0; h < kKeyHeads; ++h) {
      std::memset(work.dS, 0, sizeof work.dS);
      for (std::int64_t chunk = chunks - 1; chunk >= 0; --chunk) {
        const std::int64_t first = b * T + chunk * C;
        work.key.read(p + b * T * kWidth + h * kHead, nullptr, int(chunk * C), conv + h * kOwn);
        work.key_gradient.start(work.key);
        for (int r = 0; r < kRepeat; ++r) {
          const int head = h * kRepeat + r;
          const bf16* S = states + ((b * kHeads + head) * chunks + chunk) * D * D;
          pack<D, D>(work.value.state, S, D);
          work.value.run(work.key, p + first * kWidth, head, (2 + r) * D, w);
          for (int t = 0; t < C; ++t) {
            const std::int64_t gate = (first + t) * kWidth + h * kHead + kOwn + r * D;
            const bf16* from = dy + (first + t) * kHeads * D + head * D;
            fetch(p + gate + kAhead * kWidth, D);
            fetch(from + kAhead * kHeads * D, D);
            fetch_to_write(dp + gate + kAhead * kWidth, D);
            through_gated_norm(work.value_gradient.o + t * D, dp + gate, dnorm, from, work.value.o + t * D, p + gate,
                               norm);
          }
          work.value_gradient.run(work.key, work.value, S, work.dS[r], work.key_gradient);
          work.value_gradient.write_gates(work.value, head, w, to, dp + first * kWidth);
          for (int t = 0; t < C; ++t)
            std::memcpy(work.key_gradient.m[t] + (2 + r) * D, work.value_gradient.x + t * D, D * sizeof(float));
        }
        work.key_gradient.finish(work.key);
        work.key_gradient.write(work.key, chunk == chunks - 1, conv + h * kOwn, dp + first * kWidth + h * kHead,
                                dconv + h * kOwn);
      }
    }
}
