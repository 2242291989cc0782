// Gated grouped-query attention mixer (transformers: Qwen3_5Attention): q_proj yields query and
// output gate per head; norm and partial rotation on queries and keys; o_proj at the end.
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

class AttentionLayer {
 public:
  // Activations of a step, shared by all layers of this kind.
  struct Scratch {
    Scratch(const ModelConfig& config, std::int64_t rows_max, RegionPlan& plan);

    float* qg;
    float* k;
    float* v;
    bf16_t* q_rotated;
    float* attended;
    bf16_t* y;
  };

  // prefix: "...layers.3.self_attn.". kv_offset: of this layer in a KV block.
  static Result<AttentionLayer> load(const ModelConfig& config, const std::string& prefix,
                                     std::size_t kv_offset, WeightLoader& loader);

  // h: [rows][pad32(hidden)] bf16, normed. out: [rows][hidden].
  void forward(const LayerContext& context, const bf16_t* h, Scratch& scratch, float* out) const;

 private:
  ops::GatedAttentionShape shape_{};
  float eps_ = 0.0F;
  std::size_t kv_offset_ = 0;
  ops::PackedLinear q_proj_;
  ops::PackedLinear k_proj_;
  ops::PackedLinear v_proj_;
  ops::PackedLinear o_proj_;
  std::vector<float> q_norm_;  // 1 + w
  std::vector<float> k_norm_;
};

}  // namespace sluice
