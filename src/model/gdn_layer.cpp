#include "model/gdn_layer.h"

#include <array>

#include "kernels/scalar_math.h"
#include "model/layer_shapes.h"

namespace sluice {

GdnLayer::Scratch::Scratch(const ModelConfig& config, std::int64_t rows_max, RegionPlan& plan) {
  const ops::GatedDeltaShape shape = gated_delta_shape(config);
  const std::int64_t keys = shape.key_heads * kernels::pad32(shape.key_dim);
  qkv = plan.take<float>(rows_max * shape.channels());
  u = plan.take<bf16_t>(rows_max * shape.channels());
  z = plan.take<float>(rows_max * shape.value_size());
  a = plan.take<float>(rows_max * shape.value_heads);
  b = plan.take<float>(rows_max * shape.value_heads);
  g = plan.take<float>(rows_max * shape.value_heads);
  beta = plan.take<float>(rows_max * shape.value_heads);
  q = plan.take<bf16_t>(rows_max * keys);
  k = plan.take<bf16_t>(rows_max * keys);
  o = plan.take<float>(rows_max * shape.value_size());
  y = plan.take<bf16_t>(rows_max * kernels::pad32(shape.value_size()));
}

Result<GdnLayer> GdnLayer::load(const ModelConfig& config, const std::string& prefix,
                                std::size_t state_offset, WeightLoader& loader) {
  GdnLayer layer;
  layer.shape_ = gated_delta_shape(config);
  layer.eps_ = config.rms_norm_eps;
  layer.state_offset_ = state_offset;
  layer.in_proj_qkv_ = SLUICE_TRY(loader.linear(prefix + "in_proj_qkv.weight"));
  layer.in_proj_z_ = SLUICE_TRY(loader.linear(prefix + "in_proj_z.weight"));
  layer.in_proj_b_ = SLUICE_TRY(loader.linear(prefix + "in_proj_b.weight"));
  layer.in_proj_a_ = SLUICE_TRY(loader.linear(prefix + "in_proj_a.weight"));
  layer.out_proj_ = SLUICE_TRY(loader.linear(prefix + "out_proj.weight"));
  layer.dt_bias_ = SLUICE_TRY(loader.vector(prefix + "dt_bias"));
  layer.norm_weight_ = SLUICE_TRY(loader.vector(prefix + "norm.weight"));
  layer.decay_rate_ = SLUICE_TRY(loader.vector(prefix + "A_log"));
  for (float& rate : layer.decay_rate_) {
    rate = -kernels::exp_f32(rate);
  }
  // [channels, 1, taps] in the checkpoint; taps first here, so that channels are adjacent.
  const std::vector<float> conv = SLUICE_TRY(loader.vector(prefix + "conv1d.weight"));
  const auto channels = static_cast<std::size_t>(layer.shape_.channels());
  layer.conv_weight_.resize(conv.size());
  for (std::size_t channel = 0; channel < channels; ++channel) {
    for (std::size_t tap = 0; tap < kernels::kConvTaps; ++tap) {
      layer.conv_weight_[tap * channels + channel] = conv[channel * kernels::kConvTaps + tap];
    }
  }
  return layer;
}

void GdnLayer::forward(const LayerContext& context, const bf16_t* h, Scratch& scratch,
                       float* out) const {
  ops::LinearInput input = context.input(h, in_proj_qkv_.in_features());
  const std::array<ops::LinearProduct, 4> products{{{&in_proj_qkv_, scratch.qkv},
                                                    {&in_proj_z_, scratch.z},
                                                    {&in_proj_b_, scratch.b},
                                                    {&in_proj_a_, scratch.a}}};
  ops::linear(context.table, context.pool, input, products, ops::Reduction::whole);

  const std::int64_t channels = shape_.channels();
  context.pool.for_ranges(context.rows, 1, [&](std::int64_t begin, std::int64_t end) {
    context.table.to_bf16(scratch.qkv + begin * channels, scratch.u + begin * channels,
                          (end - begin) * channels);
    for (std::int64_t row = begin; row < end; ++row) {
      const std::int64_t at = row * shape_.value_heads;
      kernels::gdn_gates(scratch.a + at, scratch.b + at, decay_rate_.data(), dt_bias_.data(),
                         scratch.g + at, scratch.beta + at, shape_.value_heads);
    }
  });

  ops::gated_delta(context.table, context.pool,
                   {.shape = shape_,
                    .sequences = context.delta_sequences,
                    .rows = context.rows,
                    .state_offset = state_offset_,
                    .u = scratch.u,
                    .conv_weight = conv_weight_.data(),
                    .z = scratch.z,
                    .g = scratch.g,
                    .beta = scratch.beta,
                    .norm_weight = norm_weight_.data(),
                    .eps = eps_,
                    .mixed = scratch.qkv,
                    .q = scratch.q,
                    .k = scratch.k,
                    .o = scratch.o,
                    .y = scratch.y});
  ops::LinearInput mixed = context.input(scratch.y, out_proj_.in_features());
  ops::linear(context.table, context.pool, mixed, out_proj_, ops::Reduction::row_parallel, out);
}

}  // namespace sluice
