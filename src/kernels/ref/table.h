// The reference table: plain C++ that says what every kernel computes. Runs anywhere, slowly.
#pragma once

#include "kernels/kernel_table.h"

namespace sluice::kernels::ref {

void gemm_bf16(const GemmArgs& args) noexcept;
void gemm_fp8(const GemmArgs& args) noexcept;
void gemm_int8(const IntGemmArgs& args) noexcept;
void gemm_int4(const IntGemmArgs& args) noexcept;
void quantise_row(const QuantiseRowArgs& args) noexcept;
void rms_norm(const RmsNormArgs& args) noexcept;
void norm_rope(const NormRopeArgs& args) noexcept;
void attention(const AttentionArgs& args) noexcept;
void conv_silu(const ConvArgs& args) noexcept;
void l2_norm(const L2NormArgs& args) noexcept;
void gdn_chunk(const GdnChunkArgs& args) noexcept;
void gdn_fold(const GdnFoldArgs& args) noexcept;
void gated_norm(const GatedNormArgs& args) noexcept;
void silu_mul(const float* gate, const float* up, bf16_t* y, std::int64_t size) noexcept;
void sigmoid_mul(const float* x, const float* gate, bf16_t* y, std::int64_t size) noexcept;
void add(float* x, const float* y, std::int64_t size) noexcept;
void to_bf16(const float* x, bf16_t* y, std::int64_t size) noexcept;
void to_f32(const bf16_t* x, float* y, std::int64_t size) noexcept;
void embed_patch(const EmbedPatchArgs& args) noexcept;
void layer_norm(const LayerNormArgs& args) noexcept;
void bias_rope(const BiasRopeArgs& args) noexcept;
void full_attention(const FullAttentionArgs& args) noexcept;
void bias_gelu(const float* x, const float* bias, bf16_t* y, std::int64_t size) noexcept;
void bias_gelu_tanh(const float* x, const float* bias, bf16_t* y, std::int64_t size) noexcept;
void add_with_bias(float* x, const float* y, const float* bias, std::int64_t size) noexcept;

const KernelTable& table();

}  // namespace sluice::kernels::ref
