// One block of the vision tower (transformers: Qwen3_5VisionBlock): full attention, MLP. Only
// attention sees other patches than those of its piece, through the keys and values that were
// stored before.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "model/vision_grid.h"
#include "model/vision_piece.h"
#include "ops/full_attention.h"

namespace sluice {

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

}  // namespace sluice
