// Reads the weights of one model out of a checkpoint into the forms the layers compute with, and
// reports progress. Errors carry the tensor name.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "ops/linear.h"
#include "platform/thread_pool.h"
#include "weights/safetensors.h"
#include "weights/weight_preset.h"

namespace sluice {

struct PackedTensor;

// Called with (bytes done, bytes in all) as weights are packed.
using LoadProgress = std::function<void(std::size_t, std::size_t)>;

class WeightLoader {
 public:
  // bytes_total: what packed_bytes() will be at the end.
  WeightLoader(const Checkpoint& checkpoint, WeightPreset preset, ThreadPool& pool,
               const LoadProgress& progress, std::size_t bytes_total);

  // The tensor [out_features, in_features] (axes after the first are flattened), or `row_count`
  // rows of it, as a packed product operand in the preset's format; linear(): a view into the
  // checkpoint where it is packed already.
  Result<ops::PackedLinear> linear(std::string_view name);
  Result<ops::PackedLinear> linear_rows(std::string_view name, std::int64_t row_begin,
                                        std::int64_t row_count);

  // A vector as fp32; norm_weight adds the 1 of the (1 + w) convention.
  Result<std::vector<float>> vector(std::string_view name);
  Result<std::vector<float>> norm_weight(std::string_view name);

  std::size_t packed_bytes() const { return packed_bytes_; }

 private:
  Result<ops::PackedLinear> view(const PackedTensor& tensor);
  void count(const ops::PackedLinear& packed);

  const Checkpoint& checkpoint_;
  WeightPreset preset_;
  ThreadPool& pool_;
  const LoadProgress& progress_;
  std::size_t bytes_total_;
  std::size_t packed_bytes_ = 0;
};

}  // namespace sluice
