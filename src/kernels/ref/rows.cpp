// Norms, rotation, convolution and gates: one row at a time.
#include <cmath>

#include "kernels/ref/canonical.h"
#include "kernels/ref/table.h"
#include "kernels/scalar_math.h"

namespace sluice::kernels::ref {
namespace {

float silu(float x) {
  return x / (1.0F + exp_f32(-x));
}

void zero_padding(bf16_t* y, std::int64_t size) {
  for (std::int64_t i = size; i < pad32(size); ++i) {
    y[i] = 0;
  }
}

}  // namespace

void rms_norm(const RmsNormArgs& args) noexcept {
  const float scale = rms_scale(args.x, args.size, args.eps);
  for (std::int64_t i = 0; i < args.size; ++i) {
    args.y[i] = float_to_bf16((args.x[i] * scale) * args.weight[i]);
  }
  zero_padding(args.y, args.size);
}

void norm_rope(const NormRopeArgs& args) noexcept {
  const float scale = rms_scale(args.x, args.head_dim, args.eps);
  const auto normed = [&](std::int64_t i) { return (args.x[i] * scale) * args.weight[i]; };
  for (std::int64_t i = 0; i < args.half; ++i) {
    const float a = normed(i);
    const float b = normed(i + args.half);
    args.y[i] = float_to_bf16(std::fma(-b, args.sin[i], a * args.cos[i]));
    args.y[i + args.half] = float_to_bf16(std::fma(a, args.sin[i], b * args.cos[i]));
  }
  for (std::int64_t i = 2 * args.half; i < args.head_dim; ++i) {
    args.y[i] = float_to_bf16(normed(i));
  }
  zero_padding(args.y, args.head_dim);
}

void conv_silu(const ConvArgs& args) noexcept {
  for (std::int64_t t = 0; t < args.rows; ++t) {
    for (std::int64_t c = 0; c < args.channels; ++c) {
      float sum = 0.0F;
      for (std::int64_t j = 0; j < kConvTaps; ++j) {
        const std::int64_t row = t + j - (kConvTaps - 1);
        const bf16_t u = row < 0 ? args.history[(row + 3) * args.history_stride + c]
                                 : args.u[row * args.u_stride + c];
        sum = std::fma(args.weight[j * args.weight_stride + c], bf16_to_float(u), sum);
      }
      args.out[t * args.out_stride + c] = silu(sum);
    }
  }
}

void l2_norm(const L2NormArgs& args) noexcept {
  const float scale = 1.0F / std::sqrt(sum_of_squares(args.x, args.size) + 1e-6F);
  for (std::int64_t i = 0; i < args.size; ++i) {
    args.y[i] = float_to_bf16(args.x[i] * scale);
  }
  zero_padding(args.y, args.size);
}

void gated_norm(const GatedNormArgs& args) noexcept {
  const float scale = rms_scale(args.x, args.size, args.eps);
  for (std::int64_t i = 0; i < args.size; ++i) {
    args.y[i] = float_to_bf16(((args.x[i] * scale) * args.weight[i]) * silu(args.z[i]));
  }
}

void silu_mul(const float* gate, const float* up, bf16_t* y, std::int64_t size) noexcept {
  for (std::int64_t i = 0; i < size; ++i) {
    y[i] = float_to_bf16(silu(gate[i]) * up[i]);
  }
}

void sigmoid_mul(const float* x, const float* gate, bf16_t* y, std::int64_t size) noexcept {
  for (std::int64_t i = 0; i < size; ++i) {
    y[i] = float_to_bf16(x[i] * sigmoid_f32(gate[i]));
  }
}

void add(float* x, const float* y, std::int64_t size) noexcept {
  for (std::int64_t i = 0; i < size; ++i) {
    x[i] = x[i] + y[i];
  }
}

void to_bf16(const float* x, bf16_t* y, std::int64_t size) noexcept {
  for (std::int64_t i = 0; i < size; ++i) {
    y[i] = float_to_bf16(x[i]);
  }
}

void to_f32(const bf16_t* x, float* y, std::int64_t size) noexcept {
  for (std::int64_t i = 0; i < size; ++i) {
    y[i] = bf16_to_float(x[i]);
  }
}

const KernelTable& table() {
  static constexpr KernelTable kTable{
      .name = "ref",
      .gemm_bf16 = gemm_bf16,
      .gemm_fp8 = gemm_fp8,
      .gemm_int8 = gemm_int8,
      .gemm_int4 = gemm_int4,
      .quantise_row = quantise_row,
      .rms_norm = rms_norm,
      .norm_rope = norm_rope,
      .attention = attention,
      .conv_silu = conv_silu,
      .l2_norm = l2_norm,
      .gdn_chunk = gdn_chunk,
      .gdn_fold = gdn_fold,
      .gated_norm = gated_norm,
      .silu_mul = silu_mul,
      .sigmoid_mul = sigmoid_mul,
      .add = add,
      .to_bf16 = to_bf16,
      .to_f32 = to_f32,
      .embed_patch = embed_patch,
      .layer_norm = layer_norm,
      .bias_rope = bias_rope,
      .full_attention = full_attention,
      .bias_gelu = bias_gelu,
      .bias_gelu_tanh = bias_gelu_tanh,
      .add_with_bias = add_with_bias,
  };
  return kTable;
}

}  // namespace sluice::kernels::ref
