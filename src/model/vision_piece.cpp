#include "model/vision_piece.h"

#include <algorithm>
#include <iterator>

#include "base/checked_math.h"
#include "ops/rows.h"

namespace sluice {
namespace {

using kernels::pad32;

}  // namespace

VisionScratch::VisionScratch(const VisionConfig& config, std::int64_t rows_max, RegionPlan& plan) {
  const std::int64_t hidden = config.hidden_size;
  const std::int64_t intermediate = config.intermediate_size;
  const std::int64_t head_dim = hidden / config.num_heads;
  const std::int64_t widest = std::max({pad32(hidden), pad32(intermediate), kPatchElements});
  h = plan.take<bf16_t>(rows_max * pad32(hidden));
  product = plan.take<float>(rows_max * std::max(2 * hidden, intermediate));
  activated = plan.take<bf16_t>(rows_max * widest);
  q_rotated = plan.take<bf16_t>(rows_max * config.num_heads * pad32(head_dim));
  attended = plan.take<bf16_t>(rows_max * pad32(hidden));
  tiles.tiles = plan.take<bf16_t>(std::max(
      kernels::row_tiles_elements(rows_max, widest),
      kernels::row_tiles_elements(ceil_div(rows_max, kMergedPatches), kMergedPatches * hidden)));
  cos = plan.take<float>(rows_max * head_dim / 2);
  sin = plan.take<float>(rows_max * head_dim / 2);
}

Result<VisionNorm> VisionNorm::load(const std::string& name, WeightLoader& loader) {
  VisionNorm norm;
  norm.weight = SLUICE_TRY(loader.vector(name + ".weight"));
  norm.bias = SLUICE_TRY(loader.vector(name + ".bias"));
  return norm;
}

Result<VisionLinear> VisionLinear::load(const std::string& name, WeightLoader& loader) {
  VisionLinear linear;
  linear.weight = SLUICE_TRY(loader.linear(name + ".weight"));
  linear.bias = SLUICE_TRY(loader.vector(name + ".bias"));
  return linear;
}

void vision_product(VisionContext& context, const bf16_t* x, std::int64_t rows,
                    const ops::PackedLinear& weight, float* out) {
  ops::LinearInput input(x, rows, weight.in_features(), context.scratch.tiles);
  ops::linear(context.table, context.pool, input, weight, ops::Reduction::whole, out);
}

void vision_norm(VisionContext& context, const VisionNorm& norm, const VisionPiece& piece) {
  ops::layer_norm(context.table, context.pool, piece.x, piece.rows, std::ssize(norm.weight),
                  norm.weight.data(), norm.bias.data(), kVisionNormEps, context.scratch.h);
}

void add_vision_product(VisionContext& context, const bf16_t* activated, const VisionLinear& linear,
                        const VisionPiece& piece) {
  vision_product(context, activated, piece.rows, linear.weight, context.scratch.product);
  ops::add_with_bias(context.table, context.pool, piece.x, context.scratch.product,
                     linear.bias.data(), piece.rows, linear.weight.out_features());
}

}  // namespace sluice
