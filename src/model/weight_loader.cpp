#include "model/weight_loader.h"

#include <mutex>
#include <optional>
#include <span>

#include "weights/matrix_rows.h"
#include "weights/packed_model.h"
#include "weights/tensor_registry.h"

namespace sluice {

WeightLoader::WeightLoader(const Checkpoint& checkpoint, WeightPreset preset, ThreadPool& pool,
                           const LoadProgress& progress, std::size_t bytes_total)
    : checkpoint_(checkpoint),
      preset_(preset),
      pool_(pool),
      progress_(progress),
      bytes_total_(bytes_total) {}

Result<ops::PackedLinear> WeightLoader::linear(std::string_view name) {
  if (const PackedModel* packed = checkpoint_.packed();
      packed != nullptr && packed->find(name) != nullptr) {
    return view(*packed->find(name));
  }
  const TensorView* tensor = checkpoint_.find(name);
  const std::int64_t rows = tensor == nullptr || tensor->shape.empty() ? 0 : tensor->shape[0];
  return linear_rows(name, 0, rows);
}

Result<ops::PackedLinear> WeightLoader::linear_rows(std::string_view name, std::int64_t row_begin,
                                                    std::int64_t row_count) {
  const TensorView* tensor = checkpoint_.find(name);
  if (tensor == nullptr || tensor->shape.size() < 2 || row_count < 1) {
    return fail(ErrorCode::corrupt_data, "tensor " + std::string(name) + " is missing",
                std::string(name));
  }
  const std::int64_t columns = element_count(tensor->shape) / tensor->shape[0];
  const kernels::WeightFormat format = weight_format(preset_, name);
  ops::PackedLinear packed = SLUICE_TRY(ops::PackedLinear::allocate(format, row_count, columns));
  const std::int64_t at_once = kernels::rows_packed_at_once(format);
  std::mutex error_mutex;
  std::optional<Error> first_error;
  pool_.for_ranges(row_count, at_once, [&](std::int64_t begin, std::int64_t end) {
    MatrixRows batch(checkpoint_, name, format, columns);
    for (std::int64_t row = begin; row < end; row += at_once) {
      const std::int64_t count = std::min(at_once, end - row);
      const Result<void> read = batch.read(row_begin + row, count);
      if (!read) {
        const std::scoped_lock lock(error_mutex);
        first_error = read.error();
        return;
      }
      packed.set_rows(row, count, batch.rows());
    }
  });
  if (first_error) {
    return std::unexpected(*first_error);
  }
  count(packed);
  return packed;
}

Result<ops::PackedLinear> WeightLoader::view(const PackedTensor& tensor) {
  ops::PackedLinear packed = SLUICE_TRY(
      ops::PackedLinear::view(tensor.format, tensor.shape[0], tensor.shape[1], tensor.bytes));
  count(packed);
  return packed;
}

void WeightLoader::count(const ops::PackedLinear& packed) {
  packed_bytes_ += packed.bytes();
  if (progress_) {
    progress_(packed_bytes_, bytes_total_);
  }
}

Result<std::vector<float>> WeightLoader::vector(std::string_view name) {
  return read_vector_f32(checkpoint_, name);
}

Result<std::vector<float>> WeightLoader::norm_weight(std::string_view name) {
  std::vector<float> weight = SLUICE_TRY(read_vector_f32(checkpoint_, name));
  for (float& w : weight) {
    w = 1.0F + w;
  }
  return weight;
}

}  // namespace sluice
