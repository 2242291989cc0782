// The core of a gated-delta layer, from the joint projection to the input of out_proj, and its gradient.
#include "delta.h"

namespace {

struct alignas(64) Work {
  KeyHead key;
  ValueHead head;
  float S[kRepeat][D * D];
  bf16 packed[C * D];
};

void gated_norm(bf16* y, const float* o, const bf16* z, const float* norm) {
  V s = _mm512_setzero_ps();
  for (int i = 0; i < D; i += 16) s = fma(load(o + i), load(o + i), s);
  const float r = 1.f / __builtin_sqrtf(sum(s) / D + 1e-6f);
  for (int i = 0; i < D; i += 16) {
    const V gate = load(z + i);
    store(y + i, _mm512_mul_ps(_mm512_mul_ps(load(o + i), _mm512_mul_ps(load(norm + i), all(r))),
                               _mm512_mul_ps(gate, sigmoid(gate))));
  }
}

}  // namespace

// states (for the gradient), and before[B][3][kMix] with S[B][4][128][128], read and written (to go on with a
// sequence), may be null.
extern "C" void delta_forward(const bf16* p, const float* conv, const float* A_log, const float* dt_bias,
                              const float* norm, bf16* y, bf16* states, const bf16* before, float* S_io,
                              std::int64_t B, std::int64_t T) {
  static Work work;
  const Parameters w{conv, A_log, dt_bias, norm};
  const std::int64_t chunks = T / C;
  const Tiles tiles;
  for (std::int64_t b = 0; b < B; ++b)
    for (int h = 0; h < kKeyHeads; ++h) {
      float* kept = S_io ? S_io + (b * kHeads + h * kRepeat) * D * D : nullptr;
      kept ? std::memcpy(work.S, kept, sizeof work.S) : std::memset(work.S, 0, sizeof work.S);
      for (std::int64_t chunk = 0; chunk < chunks; ++chunk) {
        const std::int64_t first = b * T + chunk * C;
        work.key.read(p + b * T * kWidth + h * kHead, before ? before + b * (kTaps - 1) * kMix + h * kOwn : nullptr,
                      int(chunk * C), conv + h * kOwn);
        for (int r = 0; r < kRepeat; ++r) {
          const int head = h * kRepeat + r;
          ValueHead& v = work.head;
          float* S = work.S[r];
          if (states) round_to<D, D>(states + ((b * kHeads + head) * chunks + chunk) * D * D, S, D);
          pack<D, D>(v.state, S, D);
          v.run(work.key, p + first * kWidth, head, (2 + r) * D, w);
          pack<C, D>(work.packed, v.n, D, v.fall);
          for (int i = 0; i < D * D; i += 16) store(S + i, _mm512_mul_ps(load(S + i), all(v.end)));
          gemm<D, D, C, true>(S, D, work.key.kT, C, work.packed, 2 * D);
          for (int t = 0; t < C; ++t) {
            bf16* to = y + (first + t) * kHeads * D + head * D;
            const bf16* gate = p + (first + t) * kWidth + h * kHead + kOwn + r * D;
            fetch(gate + kAhead * kWidth, D);
            fetch_to_write(to + kAhead * kHeads * D, D);
            gated_norm(to, v.o + t * D, gate, norm);
          }
        }
      }
      if (kept) std::memcpy(kept, work.S, sizeof work.S);
    }
}
