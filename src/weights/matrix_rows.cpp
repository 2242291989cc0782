#include "weights/matrix_rows.h"

#include "weights/tensor_registry.h"

namespace sluice {

MatrixRows::MatrixRows(const Checkpoint& checkpoint, std::string_view name,
                       kernels::WeightFormat format, std::int64_t columns)
    : checkpoint_(checkpoint),
      name_(name),
      columns_(static_cast<std::size_t>(columns)),
      keeps_fp8_(format == kernels::WeightFormat::fp8 && is_fp8_matrix(checkpoint, name)) {}

Result<void> MatrixRows::read(std::int64_t row, std::int64_t count) {
  values_.resize(static_cast<std::size_t>(count) * columns_);
  SLUICE_TRY(read_matrix_rows_bf16(checkpoint_, name_, row, count, values_));
  if (keeps_fp8_) {
    codes_.resize(values_.size());
    scales_.resize(static_cast<std::size_t>(
        kernels::fp8_blocks(count) * kernels::fp8_blocks(static_cast<std::int64_t>(columns_))));
    SLUICE_TRY(read_matrix_rows_fp8(checkpoint_, name_, row, codes_, scales_));
  }
  return {};
}

kernels::WeightRows MatrixRows::rows() const {
  return {.values = values_.data(),
          .codes = keeps_fp8_ ? codes_.data() : nullptr,
          .scales = keeps_fp8_ ? scales_.data() : nullptr};
}

}  // namespace sluice
