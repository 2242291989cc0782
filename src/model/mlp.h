// SwiGLU MLP (transformers: Qwen3_5MLP): down(silu(gate(h)) * up(h)).
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"
#include "model/layer_context.h"
#include "model/region_plan.h"
#include "model/weight_loader.h"
#include "ops/linear.h"
#include "weights/model_config.h"

namespace sluice {

class Mlp {
 public:
  struct Scratch {
    Scratch(const ModelConfig& config, std::int64_t rows_max, RegionPlan& plan);

    float* gate;
    float* up;
    bf16_t* activated;
  };

  // prefix: "...layers.3.mlp.".
  static Result<Mlp> load(const std::string& prefix, WeightLoader& loader);

  // h: [rows][pad32(hidden)] bf16, normed. out: [rows][hidden].
  void forward(const LayerContext& context, const bf16_t* h, Scratch& scratch, float* out) const;

 private:
  ops::PackedLinear gate_proj_;
  ops::PackedLinear up_proj_;
  ops::PackedLinear down_proj_;
};

}  // namespace sluice
