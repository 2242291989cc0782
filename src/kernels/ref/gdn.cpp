// The gated delta rule in the anchored form, contract GDN-AMX2 (docs/NUMERICS.md).
#include <cmath>

#include "kernels/ref/canonical.h"
#include "kernels/ref/table.h"
#include "kernels/scalar_math.h"

namespace sluice::kernels::ref {
namespace {

float decay(double g, double g_j) {
  return exp_f32(static_cast<float>(g - g_j));
}

// Views into the state of one value head.
struct ValueHead {
  bf16_t* lo;
  bf16_t* hi;
  float* tail_u;
  double* tail_g;

  ValueHead(std::byte* base, const GdnStateLayout& layout)
      : lo(reinterpret_cast<bf16_t*>(base)),
        hi(lo + layout.plane_elements()),
        tail_u(reinterpret_cast<float*>(base + layout.tail_u_offset())),
        tail_g(reinterpret_cast<double*>(base + layout.tail_g_offset())) {}
};

}  // namespace

void gdn_chunk(const GdnChunkArgs& args) noexcept {
  const ValueHead head(args.value_head, args.layout);
  const std::int64_t steps = pad32(args.layout.key_dim) / kStepK;
  const std::int64_t k_stride = pad32(args.layout.key_dim);
  const std::int64_t u_stride = pad32(args.layout.value_dim);
  const float scale = 1.0F / std::sqrt(static_cast<float>(args.layout.key_dim));

  for (std::int64_t row = 0; row < args.n; ++row) {
    const std::int64_t t = args.m0 + row;
    const bf16_t* k = args.k + row * k_stride;
    const bf16_t* q = args.q + row * k_stride;
    const double previous = t == 0 ? 0.0 : head.tail_g[t - 1];
    head.tail_g[t] = previous + static_cast<double>(args.g[row * args.gate_stride]);
    const float since_anchor = exp_f32(static_cast<float>(head.tail_g[t]));

    float a[kGdnChunk];  // decayed k_j . k_t
    float b[kGdnChunk];  // decayed k_j . q_t
    for (std::int64_t j = 0; j <= t; ++j) {
      const float d = decay(head.tail_g[t], head.tail_g[j]);
      a[j] = d * product(0.0F, k, args.tail_k, j, steps, 0, steps);
      b[j] = d * product(0.0F, q, args.tail_k, j, steps, 0, steps);
    }
    for (std::int64_t c = 0; c < args.layout.value_dim; ++c) {
      const float ks =
          product(product(0.0F, k, head.lo, c, steps, 0, steps), k, head.hi, c, steps, 0, steps);
      const float qs =
          product(product(0.0F, q, head.lo, c, steps, 0, steps), q, head.hi, c, steps, 0, steps);
      float r = std::fma(-since_anchor, ks, args.v[row * args.v_stride + c]);
      for (std::int64_t j = 0; j < t; ++j) {
        r = std::fma(-a[j], head.tail_u[j * u_stride + c], r);
      }
      head.tail_u[t * u_stride + c] = args.beta[row * args.gate_stride] * r;
      float o = since_anchor * qs;
      for (std::int64_t j = 0; j <= t; ++j) {
        o = std::fma(b[j], head.tail_u[j * u_stride + c], o);
      }
      args.out[row * args.out_stride + c] = scale * o;
    }
  }
}

void gdn_fold(const GdnFoldArgs& args) noexcept {
  const ValueHead head(args.value_head, args.layout);
  const std::int64_t steps = pad32(args.layout.key_dim) / kStepK;
  const std::int64_t u_stride = pad32(args.layout.value_dim);
  const double g_last = head.tail_g[kGdnChunk - 1];
  const float keep = exp_f32(static_cast<float>(g_last));

  for (std::int64_t c = 0; c < args.layout.value_dim; ++c) {
    // Decayed u of this column in two bf16 parts, as a one-column tile of the product.
    bf16_t high[kTileElements] = {};
    bf16_t low[kTileElements] = {};
    for (std::int64_t j = 0; j < kGdnChunk; ++j) {
      const float x = decay(g_last, head.tail_g[j]) * head.tail_u[j * u_stride + c];
      const bf16_t top = float_to_bf16(x);
      high[j / 2 * 32 + j % 2] = top;
      low[j / 2 * 32 + j % 2] = float_to_bf16(x - bf16_to_float(top));
    }
    for (std::int64_t d = 0; d < args.layout.key_dim; ++d) {
      bf16_t k[kGdnChunk];
      for (std::int64_t j = 0; j < kGdnChunk; ++j) {
        k[j] = args.tail_k[packed_index(j, d, steps)];
      }
      const float update = product_step(product_step(0.0F, k, low, 0), k, high, 0);
      const std::int64_t at = packed_index(c, d, steps);
      const float old = bf16_to_float(head.hi[at]) + bf16_to_float(head.lo[at]);
      const float s = std::fma(keep, old, update);
      head.hi[at] = float_to_bf16(s);
      head.lo[at] = float_to_bf16(s - bf16_to_float(head.hi[at]));
    }
  }
}

}  // namespace sluice::kernels::ref
