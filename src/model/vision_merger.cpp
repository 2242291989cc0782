#include "model/vision_merger.h"

#include <cstdint>
#include <iterator>

#include "ops/rows.h"

namespace sluice {
namespace {

using kernels::pad32;

}  // namespace

Result<VisionMerger> VisionMerger::load(const std::string& prefix, WeightLoader& loader) {
  VisionMerger merger;
  merger.norm_ = SLUICE_TRY(VisionNorm::load(prefix + "norm", loader));
  merger.fc1_ = SLUICE_TRY(VisionLinear::load(prefix + "linear_fc1", loader));
  merger.fc2_ = SLUICE_TRY(VisionLinear::load(prefix + "linear_fc2", loader));
  return merger;
}

void VisionMerger::forward(VisionContext& context, const VisionPiece& piece, float* out) const {
  const VisionScratch& scratch = context.scratch;
  const std::int64_t rows = piece.rows / kMergedPatches;
  const std::int64_t hidden = std::ssize(norm_.weight);
  const std::int64_t merged = kMergedPatches * hidden;
  context.pool.for_ranges(rows, 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t row = begin; row < end; ++row) {
      for (std::int64_t part = 0; part < kMergedPatches; ++part) {
        const std::int64_t padding = part + 1 == kMergedPatches ? pad32(merged) - merged : 0;
        context.table.layer_norm({.x = piece.x + (row * kMergedPatches + part) * hidden,
                                  .weight = norm_.weight.data(),
                                  .bias = norm_.bias.data(),
                                  .y = scratch.h + row * pad32(merged) + part * hidden,
                                  .size = hidden,
                                  .y_size = hidden + padding,
                                  .eps = kVisionNormEps});
      }
    }
  });
  vision_product(context, scratch.h, rows, fc1_.weight, scratch.product);
  ops::bias_gelu(context.table, context.pool, ops::Gelu::exact, scratch.product, fc1_.bias.data(),
                 rows, merged, scratch.activated);
  vision_product(context, scratch.activated, rows, fc2_.weight, out);
  const std::int64_t out_size = fc2_.weight.out_features();
  context.pool.for_ranges(rows, 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t row = begin; row < end; ++row) {
      context.table.add(out + row * out_size, fc2_.bias.data(), out_size);
    }
  });
}

}  // namespace sluice
