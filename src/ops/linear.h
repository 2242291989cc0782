// A linear weight in packed form and its threaded product.
#pragma once

#include <cstdint>

#include "base/result.h"
#include "kernels/kernel_table.h"
#include "platform/aligned_buffer.h"
#include "platform/thread_pool.h"

namespace sluice::ops {

// Packed W [out_features, in_features], bf16 (kernels/layout.h). Zero until rows are packed.
class PackedLinear {
 public:
  PackedLinear() = default;
  static Result<PackedLinear> allocate(std::int64_t out_features, std::int64_t in_features);

  // Rows [row, row + count) of the weight, row-major bf16 [count, in_features].
  void set_rows(std::int64_t row, std::int64_t count, const bf16_t* rows);

  std::int64_t out_features() const { return out_features_; }
  std::int64_t in_features() const { return in_features_; }
  const bf16_t* packed() const { return buffer_.as<bf16_t>(); }
  std::size_t bytes() const { return buffer_.size(); }

 private:
  std::int64_t out_features_ = 0;
  std::int64_t in_features_ = 0;
  AlignedBuffer buffer_;
};

// How the K sum of a product is cut (docs/NUMERICS.md).
enum class Reduction {
  whole,         // one ascending run of steps
  row_parallel,  // 4 equal slices where in_features is a multiple of 128: o_proj, out_proj,
                 // down_proj
};

// out[rows, out_features] = x[rows, in_features] . W^T. x: bf16, row stride pad32(in_features),
// padding zero. out: fp32, row stride out_features. Columns are split over the pool.
void linear(const kernels::KernelTable& table, ThreadPool& pool, const bf16_t* x, std::int64_t rows,
            const PackedLinear& weight, Reduction reduction, float* out);

}  // namespace sluice::ops
