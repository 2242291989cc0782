#include "model/attention_layer.h"

#include <array>

#include "model/layer_shapes.h"

namespace sluice {

AttentionLayer::Scratch::Scratch(const ModelConfig& config, std::int64_t rows_max,
                                 RegionPlan& plan) {
  const ops::GatedAttentionShape shape = attention_shape(config);
  const std::int64_t size = shape.heads * shape.head_dim;
  const std::int64_t kv_size = shape.kv_heads * shape.head_dim;
  qg = plan.take<float>(rows_max * 2 * size);
  k = plan.take<float>(rows_max * kv_size);
  v = plan.take<float>(rows_max * kv_size);
  q_rotated = plan.take<bf16_t>(rows_max * shape.heads * kernels::pad32(shape.head_dim));
  attended = plan.take<float>(rows_max * size);
  y = plan.take<bf16_t>(rows_max * kernels::pad32(size));
}

Result<AttentionLayer> AttentionLayer::load(const ModelConfig& config, const std::string& prefix,
                                            std::size_t kv_offset, WeightLoader& loader) {
  AttentionLayer layer;
  layer.shape_ = attention_shape(config);
  layer.eps_ = config.rms_norm_eps;
  layer.kv_offset_ = kv_offset;
  layer.q_proj_ = SLUICE_TRY(loader.linear(prefix + "q_proj.weight"));
  layer.k_proj_ = SLUICE_TRY(loader.linear(prefix + "k_proj.weight"));
  layer.v_proj_ = SLUICE_TRY(loader.linear(prefix + "v_proj.weight"));
  layer.o_proj_ = SLUICE_TRY(loader.linear(prefix + "o_proj.weight"));
  layer.q_norm_ = SLUICE_TRY(loader.norm_weight(prefix + "q_norm.weight"));
  layer.k_norm_ = SLUICE_TRY(loader.norm_weight(prefix + "k_norm.weight"));
  return layer;
}

void AttentionLayer::forward(const LayerContext& context, const bf16_t* h, Scratch& scratch,
                             float* out) const {
  ops::LinearInput input = context.input(h, q_proj_.in_features());
  const std::array<ops::LinearProduct, 3> products{
      {{&q_proj_, scratch.qg}, {&k_proj_, scratch.k}, {&v_proj_, scratch.v}}};
  ops::linear(context.table, context.pool, input, products, ops::Reduction::whole);
  ops::gated_attention(context.table, context.pool,
                       {.shape = shape_,
                        .sequences = context.attention_sequences,
                        .rows = context.rows,
                        .qg = scratch.qg,
                        .k = scratch.k,
                        .v = scratch.v,
                        .q_weight = q_norm_.data(),
                        .k_weight = k_norm_.data(),
                        .cos = context.rope_cos,
                        .sin = context.rope_sin,
                        .eps = eps_,
                        .kv_blocks = context.kv_blocks + kv_offset_,
                        .kv_block_stride = context.kv_block_stride,
                        .q_rotated = scratch.q_rotated,
                        .attended = scratch.attended,
                        .y = scratch.y});
  ops::LinearInput mixed = context.input(scratch.y, o_proj_.in_features());
  ops::linear(context.table, context.pool, mixed, o_proj_, ops::Reduction::row_parallel, out);
}

}  // namespace sluice
