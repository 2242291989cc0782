// The reading half of tensor_registry.h: elements out of mapped files, whatever their dtype and
// alignment. No knowledge of names beyond the scale that stands beside an FP8 matrix.
#include <fmt/format.h>

#include <cmath>
#include <cstring>

#include "base/checked_math.h"
#include "kernels/weight_format.h"
#include "platform/float_mode.h"
#include "weights/strict_json.h"
#include "weights/tensor_registry.h"

namespace sluice {
namespace {

using kernels::kFp8BlockSize;

// Element i of an array that may start anywhere.
template <typename T>
T load(const std::byte* base, std::size_t index) {
  T value;
  std::memcpy(&value, base + index * sizeof(T), sizeof(T));
  return value;
}

void f32_to_bf16(const std::byte* source, std::span<bf16_t> out) {
  for (std::size_t i = 0; i < out.size(); ++i) {
    out[i] = float_to_bf16(load<float>(source, i));
  }
}

void f16_to_bf16(const std::byte* source, std::span<bf16_t> out) {
  for (std::size_t i = 0; i < out.size(); ++i) {
    out[i] = float_to_bf16(f16_to_float(load<std::uint16_t>(source, i)));
  }
}

// One row with one fp32 scale per 128 columns. The caller flushes denormals.
void f8_to_bf16(const std::byte* source, std::span<const float> scales, std::span<bf16_t> out) {
  for (std::size_t i = 0; i < out.size(); ++i) {
    out[i] = kernels::fp8_weight(static_cast<std::uint8_t>(source[i]),
                                 scales[i / static_cast<std::size_t>(kFp8BlockSize)]);
  }
}

bool is_finite(bf16_t value) {
  return (value & 0x7f80U) != 0x7f80U;
}

struct Matrix {
  std::string_view name;
  TensorView view;
  std::int64_t rows = 0;
  std::int64_t columns = 0;
};

std::unexpected<Error> reject(ErrorCode code, std::string_view name, std::string_view reason) {
  return fail(code, fmt::format("tensor {}: {}", printable(name), reason), std::string(name));
}

Result<const TensorView*> find(const Checkpoint& checkpoint, std::string_view name) {
  const TensorView* view = checkpoint.find(name);
  if (view == nullptr) {
    return reject(ErrorCode::not_found, name,
                  fmt::format("not in {}", checkpoint.directory().string()));
  }
  return view;
}

Result<Matrix> find_matrix(const Checkpoint& checkpoint, std::string_view name) {
  const TensorView* view = SLUICE_TRY(find(checkpoint, name));
  if (view->shape.size() < 2 || element_count(view->shape) == 0) {
    return reject(ErrorCode::invalid_argument, name,
                  fmt::format("shape {}, want a matrix", to_string(view->shape)));
  }
  const std::int64_t rows = view->shape[0];
  return Matrix{
      .name = name, .view = *view, .rows = rows, .columns = element_count(view->shape) / rows};
}

// The scales of an FP8 matrix, checked for shape.
Result<const TensorView*> find_scale(const Checkpoint& checkpoint, const Matrix& matrix) {
  const std::string name = std::string(matrix.name) + "_scale_inv";
  const TensorView* scale = SLUICE_TRY(find(checkpoint, name));
  const Shape want{kernels::fp8_blocks(matrix.rows), kernels::fp8_blocks(matrix.columns)};
  if (scale->shape != want || (scale->dtype != DType::bf16 && scale->dtype != DType::f32)) {
    return reject(ErrorCode::corrupt_data, name,
                  fmt::format("{} {}, want BF16 or F32 {}", dtype_name(scale->dtype),
                              to_string(scale->shape), to_string(want)));
  }
  return scale;
}

// Scales of the block row that holds `row`, as fp32.
Result<void> read_scales(const Matrix& matrix, const TensorView& scale, std::int64_t row,
                         std::span<float> out) {
  const auto begin = static_cast<std::size_t>(row / kFp8BlockSize) * out.size();
  for (std::size_t i = 0; i < out.size(); ++i) {
    out[i] = scale.dtype == DType::f32 ? load<float>(scale.bytes.data(), begin + i)
                                       : bf16_to_float(load<bf16_t>(scale.bytes.data(), begin + i));
    if (!std::isfinite(out[i])) {
      return reject(ErrorCode::corrupt_data, matrix.name,
                    fmt::format("scale [{}, {}] is {}, want a finite number", row / kFp8BlockSize,
                                i, out[i]));
    }
  }
  return {};
}

Result<void> check_finite(const Matrix& matrix, std::int64_t row, std::span<const bf16_t> values) {
  unsigned bad = 0;
  for (const bf16_t value : values) {
    bad |= is_finite(value) ? 0U : 1U;
  }
  if (bad == 0) {
    return {};
  }
  std::size_t column = 0;
  while (is_finite(values[column])) {
    ++column;
  }
  return reject(ErrorCode::corrupt_data, matrix.name,
                fmt::format("row {}, column {} is {} in bf16, want a finite number", row, column,
                            bf16_to_float(values[column])));
}

}  // namespace

Result<void> read_matrix_rows_bf16(const Checkpoint& checkpoint, std::string_view name,
                                   std::int64_t row_begin, std::int64_t row_count,
                                   std::span<bf16_t> out) {
  const Matrix matrix = SLUICE_TRY(find_matrix(checkpoint, name));
  if (row_begin < 0 || row_count < 0 || row_begin > matrix.rows ||
      row_count > matrix.rows - row_begin ||
      out.size() != static_cast<std::size_t>(row_count * matrix.columns)) {
    return reject(ErrorCode::invalid_argument, name,
                  fmt::format("{} rows from {} into {} values, it is [{}, {}]", row_count,
                              row_begin, out.size(), matrix.rows, matrix.columns));
  }
  const TensorView* scale = nullptr;
  std::vector<float> scales;
  if (matrix.view.dtype == DType::f8_e4m3) {
    scale = SLUICE_TRY(find_scale(checkpoint, matrix));
    scales.resize(static_cast<std::size_t>(scale->shape[1]));
  }
  const FlushDenormals float_mode;  // the same product on every thread
  const auto columns = static_cast<std::size_t>(matrix.columns);
  const std::size_t row_bytes = columns * dtype_bytes(matrix.view.dtype);
  for (std::int64_t i = 0; i < row_count; ++i) {
    const std::int64_t row = row_begin + i;
    const std::byte* source = matrix.view.bytes.data() + static_cast<std::size_t>(row) * row_bytes;
    const std::span<bf16_t> target = out.subspan(static_cast<std::size_t>(i) * columns, columns);
    switch (matrix.view.dtype) {
      case DType::bf16:
        std::memcpy(target.data(), source, row_bytes);
        break;
      case DType::f32:
        f32_to_bf16(source, target);
        break;
      case DType::f16:
        f16_to_bf16(source, target);
        break;
      case DType::f8_e4m3:
        if (i == 0 || row % kFp8BlockSize == 0) {
          SLUICE_TRY(read_scales(matrix, *scale, row, scales));
        }
        f8_to_bf16(source, scales, target);
        break;
      default:
        return reject(
            ErrorCode::unsupported, name,
            fmt::format("dtype {}, want BF16, F16, F32 or F8_E4M3", dtype_name(matrix.view.dtype)));
    }
    SLUICE_TRY(check_finite(matrix, row, target));
  }
  return {};
}

bool is_fp8_matrix(const Checkpoint& checkpoint, std::string_view name) {
  const TensorView* view = checkpoint.find(name);
  return view != nullptr && view->dtype == DType::f8_e4m3;
}

Result<void> read_matrix_rows_fp8(const Checkpoint& checkpoint, std::string_view name,
                                  std::int64_t row_begin, std::span<std::uint8_t> codes,
                                  std::span<float> scales) {
  const Matrix matrix = SLUICE_TRY(find_matrix(checkpoint, name));
  const TensorView* scale = SLUICE_TRY(find_scale(checkpoint, matrix));
  const auto columns = static_cast<std::size_t>(matrix.columns);
  const auto blocks = static_cast<std::size_t>(scale->shape[1]);
  const std::size_t rows = codes.size() / columns;
  const std::size_t block_rows = ceil_div(rows, static_cast<std::size_t>(kFp8BlockSize));
  if (matrix.view.dtype != DType::f8_e4m3 || row_begin < 0 || row_begin % kFp8BlockSize != 0 ||
      row_begin > matrix.rows || rows > static_cast<std::size_t>(matrix.rows - row_begin) ||
      codes.size() != rows * columns || scales.size() != block_rows * blocks) {
    return reject(
        ErrorCode::invalid_argument, name,
        fmt::format("{} codes and {} scales from row {}, it is {} {}", codes.size(), scales.size(),
                    row_begin, dtype_name(matrix.view.dtype), to_string(matrix.view.shape)));
  }
  std::memcpy(codes.data(),
              matrix.view.bytes.data() + static_cast<std::size_t>(row_begin) * columns,
              codes.size());
  for (std::size_t i = 0; i < block_rows; ++i) {
    SLUICE_TRY(read_scales(matrix, *scale, row_begin + static_cast<std::int64_t>(i) * kFp8BlockSize,
                           scales.subspan(i * blocks, blocks)));
  }
  return {};
}

Result<std::vector<float>> read_vector_f32(const Checkpoint& checkpoint, std::string_view name) {
  const TensorView* view = SLUICE_TRY(find(checkpoint, name));
  std::vector<float> values(static_cast<std::size_t>(element_count(view->shape)));
  const std::byte* source = view->bytes.data();
  for (std::size_t i = 0; i < values.size(); ++i) {
    switch (view->dtype) {
      case DType::bf16:
        values[i] = bf16_to_float(load<bf16_t>(source, i));
        break;
      case DType::f16:
        values[i] = f16_to_float(load<std::uint16_t>(source, i));
        break;
      case DType::f32:
        values[i] = load<float>(source, i);
        break;
      default:
        return reject(ErrorCode::unsupported, name,
                      fmt::format("dtype {}, want BF16, F16 or F32", dtype_name(view->dtype)));
    }
    if (!std::isfinite(values[i])) {
      return reject(ErrorCode::corrupt_data, name,
                    fmt::format("element {} is {}, want a finite number", i, values[i]));
    }
  }
  return values;
}

}  // namespace sluice
