// One sequence alone on a model, driven step by step: for whoever wants logits and no engine.
// Blocks 0, 1, ... and slot 0 are its own.
//
// Thread rule: one owner; the model outlives it.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/result.h"
#include "model/qwen3_5.h"
#include "platform/aligned_buffer.h"
#include "request/request.h"

namespace sluice {

class LoneSequence {
 public:
  // Room for tokens_max tokens. Error resource_exhausted: no memory.
  static Result<LoneSequence> create(Qwen3_5& model, std::int64_t tokens_max);

  // Computes the next tokens (at most step_tokens_max of the model); logits [rows.size(),
  // vocab_size] of the given rows, ascending and counted from the first of them.
  void forward(std::span<const TokenId> token_ids, std::span<const std::int32_t> rows,
               std::span<float> logits);

  std::int64_t position() const { return position_; }

 private:
  explicit LoneSequence(Qwen3_5& model) : model_(&model) {}

  Qwen3_5* model_;
  AlignedBuffer kv_;
  AlignedBuffer state_;
  std::vector<std::int32_t> block_table_;
  std::vector<std::int32_t> rope_positions_;  // [3][T] of the step
  std::int64_t position_ = 0;
};

}  // namespace sluice
