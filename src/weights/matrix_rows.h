// Rows of a matrix on their way from a checkpoint into a packed format: what is read for it, and
// memory for that. One object per worker.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "kernels/weight_format.h"
#include "weights/safetensors.h"

namespace sluice {

class MatrixRows {
 public:
  // Up to kernels::rows_packed_at_once(format) rows of `columns` values. FP8 blocks that become fp8
  // are read as they are stored.
  MatrixRows(const Checkpoint& checkpoint, std::string_view name, kernels::WeightFormat format,
             std::int64_t columns);

  // Rows [row, row + count). Errors of read_matrix_rows_bf16().
  Result<void> read(std::int64_t row, std::int64_t count);

  // What was read last.
  kernels::WeightRows rows() const;
  std::span<const bf16_t> values() const { return values_; }

 private:
  const Checkpoint& checkpoint_;
  std::string name_;
  std::size_t columns_;
  bool keeps_fp8_;
  std::vector<bf16_t> values_;
  std::vector<std::uint8_t> codes_;
  std::vector<float> scales_;
};

}  // namespace sluice
