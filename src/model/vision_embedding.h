// Patches to the residual stream (transformers: Qwen3_5VisionPatchEmbed and the learned positions).
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "base/result.h"
#include "model/vision_grid.h"
#include "model/vision_piece.h"
#include "request/vision_input.h"
#include "weights/safetensors.h"

namespace sluice {

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

}  // namespace sluice
