#include "model/mlp.h"

#include <array>

#include "ops/rows.h"

namespace sluice {

Mlp::Scratch::Scratch(const ModelConfig& config, std::int64_t rows_max, RegionPlan& plan)
    : gate(plan.take<float>(rows_max * config.intermediate_size)),
      up(plan.take<float>(rows_max * config.intermediate_size)),
      activated(plan.take<bf16_t>(rows_max * kernels::pad32(config.intermediate_size))) {}

Result<Mlp> Mlp::load(const std::string& prefix, WeightLoader& loader) {
  Mlp mlp;
  mlp.gate_proj_ = SLUICE_TRY(loader.linear(prefix + "gate_proj.weight"));
  mlp.up_proj_ = SLUICE_TRY(loader.linear(prefix + "up_proj.weight"));
  mlp.down_proj_ = SLUICE_TRY(loader.linear(prefix + "down_proj.weight"));
  return mlp;
}

void Mlp::forward(const LayerContext& context, const bf16_t* h, Scratch& scratch,
                  float* out) const {
  ops::LinearInput input = context.input(h, gate_proj_.in_features());
  const std::array<ops::LinearProduct, 2> products{
      {{&gate_proj_, scratch.gate}, {&up_proj_, scratch.up}}};
  ops::linear(context.table, context.pool, input, products, ops::Reduction::whole);
  ops::silu_mul(context.table, context.pool, scratch.gate, scratch.up, context.rows,
                gate_proj_.out_features(), scratch.activated);
  ops::LinearInput activated = context.input(scratch.activated, down_proj_.in_features());
  ops::linear(context.table, context.pool, activated, down_proj_, ops::Reduction::row_parallel,
              out);
}

}  // namespace sluice
