// Gated DeltaNet mixer (transformers: Qwen3_5GatedDeltaNet). y = out_proj(gated_delta(in_proj(h))).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "model/layer_context.h"
#include "model/region_plan.h"
#include "model/weight_loader.h"
#include "ops/linear.h"
#include "weights/model_config.h"

namespace sluice {

class GdnLayer {
 public:
  // Activations of a step, shared by all layers of this kind.
  struct Scratch {
    Scratch(const ModelConfig& config, std::int64_t rows_max, RegionPlan& plan);

    float* qkv;  // in_proj_qkv; after rounding to u, the output of the convolution
    bf16_t* u;
    float* z;
    float* a;
    float* b;
    float* g;
    float* beta;
    bf16_t* q;
    bf16_t* k;
    float* o;
    bf16_t* y;
  };

  // prefix: "...layers.3.linear_attn.". state_offset: of this layer in a state slot.
  static Result<GdnLayer> load(const ModelConfig& config, const std::string& prefix,
                               std::size_t state_offset, WeightLoader& loader);

  // h: [rows][pad32(hidden)] bf16, normed. out: [rows][hidden].
  void forward(const LayerContext& context, const bf16_t* h, Scratch& scratch, float* out) const;

 private:
  ops::GatedDeltaShape shape_{};
  float eps_ = 0.0F;
  std::size_t state_offset_ = 0;
  ops::PackedLinear in_proj_qkv_;
  ops::PackedLinear in_proj_z_;
  ops::PackedLinear in_proj_b_;
  ops::PackedLinear in_proj_a_;
  ops::PackedLinear out_proj_;
  std::vector<float> conv_weight_;  // [4][channels]
  std::vector<float> decay_rate_;   // -exp(A_log) [value_heads]
  std::vector<float> dt_bias_;
  std::vector<float> norm_weight_;  // [value_dim], plain weight
};

}  // namespace sluice
