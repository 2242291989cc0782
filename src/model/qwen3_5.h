// The text model of the qwen3_5 family: embeddings, gated-delta and attention layers, head.
//
// forward() computes one step for any mix of sequences. The logits of a row depend only on the
// tokens before it in its sequence, bit for bit (docs/NUMERICS.md).
//
// Thread rule: one owner; forward() uses the pool given at load.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "base/result.h"
#include "model/cache_layout.h"
#include "model/forward_batch.h"
#include "model/weight_loader.h"
#include "weights/model_config.h"
#include "weights/safetensors.h"
#include "weights/weight_preset.h"

namespace sluice {

class ThreadPool;
class VisionEncoder;
namespace kernels {
struct KernelTable;
}

struct ModelOptions {
  // None: as the directory is packed, or bf16.
  std::optional<WeightPreset> preset = std::nullopt;
  std::int64_t step_tokens_max = 512;     // rows of one forward()
  std::int64_t step_logit_rows_max = 64;  // logit rows of one forward()
  // Patches of the largest picture that the vision encoder gets memory for; 0: it is not loaded.
  std::int64_t vision_patches_max = 0;
};

class Qwen3_5 {
 public:
  // Checks every tensor against the registry and packs the weights in memory, or verifies those of
  // a packed directory and uses them where they are. `checkpoint` must
  // outlive the model (embedding rows are read from its mapping); so must the pool and the table.
  static Result<std::unique_ptr<Qwen3_5>> load(const ModelConfig& config,
                                               const Checkpoint& checkpoint,
                                               const kernels::KernelTable& table, ThreadPool& pool,
                                               const ModelOptions& options,
                                               const LoadProgress& progress);
  virtual ~Qwen3_5() = default;

  virtual const ModelConfig& config() const = 0;
  virtual const CacheLayout& cache_layout() const = 0;
  virtual const ModelOptions& options() const = 0;  // the preset is set

  // Null: the model has none, or it was not wanted.
  virtual VisionEncoder* vision() { return nullptr; }

  // Bytes held, without the vision encoder: packed weights, and activations of a step.
  virtual std::size_t weight_bytes() const = 0;
  virtual std::size_t workspace_bytes() const = 0;

  // logits: [logit_rows, vocab_size] fp32. The batch obeys the limits of options(); token ids are
  // in [0, vocab_size) (both are the caller's duty, checked).
  virtual void forward(const ForwardBatch& batch, const CacheMemory& cache,
                       std::span<float> logits) = 0;
};

}  // namespace sluice
