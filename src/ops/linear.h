// A linear weight in packed form and its threaded product.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/result.h"
#include "kernels/kernel_table.h"
#include "platform/aligned_buffer.h"
#include "platform/thread_pool.h"

namespace sluice::ops {

// Packed W [out_features, in_features] in one of the formats of kernels/weight_format.h.
class PackedLinear {
 public:
  PackedLinear() = default;

  // Zero until rows are packed. Error unsupported: more in_features than a product of the format
  // can sum (kernels::kIntProductKMax).
  static Result<PackedLinear> allocate(kernels::WeightFormat format, std::int64_t out_features,
                                       std::int64_t in_features);
  static Result<PackedLinear> allocate(std::int64_t out_features, std::int64_t in_features) {
    return allocate(kernels::WeightFormat::bf16, out_features, in_features);
  }

  // Packed before, somewhere else: `packed` must outlive the object. Error corrupt_data unless it
  // has the right size and is 64-byte aligned.
  static Result<PackedLinear> view(kernels::WeightFormat format, std::int64_t out_features,
                                   std::int64_t in_features, std::span<const std::byte> packed);

  // Rows [row, row + count) of the weight, in multiples of kernels::rows_packed_at_once() but for
  // the last. Not for a view.
  void set_rows(std::int64_t row, std::int64_t count, const kernels::WeightRows& rows);

  kernels::WeightFormat format() const { return format_; }
  std::int64_t out_features() const { return out_features_; }
  std::int64_t in_features() const { return in_features_; }
  const std::byte* packed() const { return view_ != nullptr ? view_ : buffer_.data(); }
  std::size_t bytes() const {
    return static_cast<std::size_t>(kernels::packed_bytes(format_, out_features_, in_features_));
  }

 private:
  kernels::WeightFormat format_ = kernels::WeightFormat::bf16;
  std::int64_t out_features_ = 0;
  std::int64_t in_features_ = 0;
  AlignedBuffer buffer_;
  const std::byte* view_ = nullptr;
};

// How the K sum of a product is cut (docs/NUMERICS.md). Integer sums are exact: no cut shows.
enum class Reduction {
  whole,         // one ascending run of steps
  row_parallel,  // 4 equal slices where in_features is a multiple of 128: o_proj, out_proj,
                 // down_proj
};

// The rows of one product as kernels read them, or the memory for it.
struct RowTiles {
  bf16_t* tiles = nullptr;           // row_tiles_elements()
  std::int8_t* quantised = nullptr;  // int_rows_bytes()
  float* scales = nullptr;           // one per row
};

// Rows that several weights are multiplied with. Each form of them is made once, in `memory`, when
// the first weight asks for it: `tiles` for bf16 and fp8 weights, the others for integers.
class LinearInput {
 public:
  // x: bf16 [rows][pad32(features)], padding zero.
  LinearInput(const bf16_t* x, std::int64_t rows, std::int64_t features, const RowTiles& memory)
      : x_(x), rows_(rows), features_(features), memory_(memory) {}

  std::int64_t rows() const { return rows_; }
  std::int64_t features() const { return features_; }
  const bf16_t* tiles(ThreadPool& pool);
  const RowTiles& quantised(const kernels::KernelTable& table, ThreadPool& pool);

 private:
  const bf16_t* row(std::int64_t row) const { return x_ + row * kernels::pad32(features_); }

  const bf16_t* x_;
  std::int64_t rows_;
  std::int64_t features_;
  RowTiles memory_;
  bool is_tiled_ = false;
  bool is_quantised_ = false;
};

// One of several products of the same rows: out[rows, out_features] = x[rows, in_features] . W^T.
// out: fp32, row stride out_features.
struct LinearProduct {
  const PackedLinear* weight;
  float* out;
};

// All of them, the columns of all together split over the pool.
void linear(const kernels::KernelTable& table, ThreadPool& pool, LinearInput& input,
            std::span<const LinearProduct> products, Reduction reduction);
void linear(const kernels::KernelTable& table, ThreadPool& pool, LinearInput& input,
            const PackedLinear& weight, Reduction reduction, float* out);

}  // namespace sluice::ops
