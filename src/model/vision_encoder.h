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

// One picture on its way through the encoder. Holds workspace_bytes() from start() until it is
// destroyed; must not outlive the encoder.
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

class VisionEncoder {
 public:
  // Checks the tensors against the registry and packs the weights in memory. Errors: not_found (the
  // model has no vision tower), unsupported (a size this encoder does not compute), corrupt_data.
  // The pool and the table must outlive the encoder; the checkpoint need not.
  static Result<std::unique_ptr<VisionEncoder>> load(const ModelConfig& config,
                                                     const Checkpoint& checkpoint,
                                                     const kernels::KernelTable& table,
                                                     ThreadPool& pool,
                                                     const LoadProgress& progress);
  virtual ~VisionEncoder() = default;

  virtual std::int64_t row_size() const = 0;  // out_hidden_size
  virtual std::size_t weight_bytes() const = 0;

  // Memory of one encoding, and its floating-point operations, for a grid of patches.
  virtual std::size_t workspace_bytes(std::int64_t grid_rows, std::int64_t grid_columns) const = 0;
  virtual double flops(std::int64_t grid_rows, std::int64_t grid_columns) const = 0;

  // The grid and the pixels agree (checked). Error resource_exhausted: no memory for it.
  virtual Result<std::unique_ptr<VisionEncoding>> start(
      std::shared_ptr<const VisionInput> input) = 0;
};

}  // namespace sluice
