// The parts of the vision tower (transformers: Qwen3_5VisionModel): patch embedding, blocks,
// merger. Each works on a piece, some consecutive patches of one picture; only attention sees the
// others, through the keys and values that were stored before.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "kernels/kernel_table.h"
#include "model/region_plan.h"
#include "model/vision_grid.h"
#include "model/weight_loader.h"
#include "ops/full_attention.h"
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

class VisionEmbedding {
 public:
  static Result<VisionEmbedding> load(const VisionConfig& config, const std::string& prefix,
                                      const Checkpoint& checkpoint, WeightLoader& loader);
  void forward(VisionContext& context, const VisionInput& input, const VisionGrid& grid,
               const VisionPiece& piece) const;
  std::size_t table_bytes() const { return positions_.size() * sizeof(bf16_t); }

 private:
  VisionLinear proj_;
  std::vector<bf16_t> positions_;  // [num_position_embeddings][hidden_size]
};

class VisionBlock {
 public:
  static Result<VisionBlock> load(const VisionConfig& config, const std::string& prefix,
                                  WeightLoader& loader);

  // First for every piece; it leaves x as it is.
  void store_keys(VisionContext& context, const ops::FullAttentionShape& shape,
                  const VisionGrid& grid, const VisionPiece& piece, bf16_t* kv) const;
  // Then, piece by piece, x += attention, x += MLP.
  void attend(VisionContext& context, const ops::FullAttentionShape& shape, const VisionGrid& grid,
              const VisionPiece& piece, const bf16_t* kv) const;
  void mlp(VisionContext& context, const VisionPiece& piece) const;

 private:
  VisionNorm norm1_;
  VisionNorm norm2_;
  ops::PackedLinear q_;   // the first third of attn.qkv
  ops::PackedLinear kv_;  // the others
  std::vector<float> qkv_bias_;
  VisionLinear proj_;
  VisionLinear fc1_;
  VisionLinear fc2_;
};

class VisionMerger {
 public:
  static Result<VisionMerger> load(const std::string& prefix, WeightLoader& loader);
  // out: [piece.rows / 4][out_hidden_size].
  void forward(VisionContext& context, const VisionPiece& piece, float* out) const;

 private:
  VisionNorm norm_;
  VisionLinear fc1_;
  VisionLinear fc2_;
};

}  // namespace sluice
