// What the parts of the vision tower share: they work on pieces, some consecutive patches of one
// picture, with products that have biases and norms that do, too.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "kernels/kernel_table.h"
#include "model/region_plan.h"
#include "model/weight_loader.h"
#include "ops/linear.h"
#include "platform/thread_pool.h"
#include "request/vision_input.h"
#include "weights/model_config.h"

namespace sluice {

// Activations of one piece, shared by all parts.
struct VisionScratch {
  VisionScratch(const VisionConfig& config, std::int64_t rows_max, RegionPlan& plan);

  bf16_t* h;          // normed input of a product
  float* product;     // its output
  bf16_t* activated;  // patches, or what GELU made
  bf16_t* q_rotated;
  bf16_t* attended;
  ops::RowTiles tiles;  // of the input of a product
  float* cos;
  float* sin;
};

struct VisionContext {
  const kernels::KernelTable& table;
  ThreadPool& pool;
  VisionScratch scratch;
};

// Patches [begin, begin + rows) of a picture, and their residual stream [rows][hidden_size].
struct VisionPiece {
  std::int64_t begin;
  std::int64_t rows;
  float* x;
};

struct VisionNorm {
  std::vector<float> weight;
  std::vector<float> bias;

  static Result<VisionNorm> load(const std::string& name, WeightLoader& loader);
};

// A product and its bias.
struct VisionLinear {
  ops::PackedLinear weight;
  std::vector<float> bias;

  static Result<VisionLinear> load(const std::string& name, WeightLoader& loader);
};

// bf16 rows to fp32 rows: out = x . W^T.
void vision_product(VisionContext& context, const bf16_t* x, std::int64_t rows,
                    const ops::PackedLinear& weight, float* out);
// scratch.h = norm of the piece.
void vision_norm(VisionContext& context, const VisionNorm& norm, const VisionPiece& piece);
// x += product of `activated` and its bias.
void add_vision_product(VisionContext& context, const bf16_t* activated, const VisionLinear& linear,
                        const VisionPiece& piece);

// Eps of every LayerNorm of the tower.
inline constexpr float kVisionNormEps = 1e-6F;
// Patches that the merger makes one row of.
inline constexpr std::int64_t kMergedPatches = kVisionMergeSize * kVisionMergeSize;
// Values of a patch: 3 channels of 2 frames.
inline constexpr std::int64_t kPatchElements = 3 * 2 * kVisionPatchSize * kVisionPatchSize;

}  // namespace sluice
