// The table of the 16-lane kernels; the last part of an instruction set's table.cpp.

static constexpr KernelTable make_table(const char* name) {
  return {
      .name = name,
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
}
