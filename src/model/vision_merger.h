// Four adjacent patches to one row of the prompt (transformers: Qwen3_5VisionPatchMerger).
#pragma once

#include <string>

#include "base/result.h"
#include "model/vision_piece.h"

namespace sluice {

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
