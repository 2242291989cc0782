// The vision tower of the qwen3_5 family: pixels of one picture, or of two successive frames of a
// video, to the rows that stand for its placeholders in the prompt.
//
// The rows of a picture depend on its pixels and on nothing else, bit for bit: not on how advance()
// cut the work, the number of threads or the instruction set (docs/NUMERICS.md, "Vision encoder").
// Pictures do not see one another.
//
// Thread rule: one owner (the engine thread); load() and advance() use the pool given at load.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/result.h"
#include "model/weight_loader.h"
#include "request/vision_input.h"
#include "weights/model_config.h"
#include "weights/safetensors.h"

namespace sluice {

class ThreadPool;
namespace kernels {
struct KernelTable;
}

// One picture on its way through the encoder. Uses the encoder's workspace until it is destroyed;
// must not outlive the encoder.
class VisionEncoding {
 public:
  virtual ~VisionEncoding() = default;

  // Computes pieces of the work, at least one, and no further one that would take the sum of this
  // call beyond flops_max. A piece is a few hundred patches of one layer. True when finished; then
  // it does nothing.
  virtual bool advance(double flops_max) = 0;

  // [token_count][out_hidden_size]. Once, after advance() said that it is finished (checked).
  virtual std::vector<float> take_rows() = 0;
};

struct VisionOptions {
  std::int64_t patches_max = 0;  // of the largest picture, at least kMergedPatches
};

class VisionEncoder {
 public:
  // Checks the tensors against the registry, packs the weights in memory and reserves what the
  // largest picture needs. Errors: not_found (the model has no vision tower), unsupported (a size
  // this encoder does not compute), corrupt_data, resource_exhausted.
  // The pool and the table must outlive the encoder; the checkpoint need not.
  static Result<std::unique_ptr<VisionEncoder>> load(const ModelConfig& config,
                                                     const Checkpoint& checkpoint,
                                                     const kernels::KernelTable& table,
                                                     ThreadPool& pool, const VisionOptions& options,
                                                     const LoadProgress& progress);
  virtual ~VisionEncoder() = default;

  virtual std::int64_t row_size() const = 0;  // out_hidden_size
  virtual std::int64_t patches_max() const = 0;

  // Bytes held: packed weights, and activations of the largest picture. The pages of the latter are
  // resident while a picture of that size is encoded.
  virtual std::size_t weight_bytes() const = 0;
  virtual std::size_t workspace_bytes() const = 0;

  // Floating-point operations for a grid of patches.
  virtual double flops(std::int64_t grid_rows, std::int64_t grid_columns) const = 0;

  // The grid and the pixels agree, it has at most patches_max() patches, and no other encoding
  // exists (all checked). Error resource_exhausted: no memory for its rows.
  virtual Result<std::unique_ptr<VisionEncoding>> start(
      std::shared_ptr<const VisionInput> input) = 0;
};

}  // namespace sluice
