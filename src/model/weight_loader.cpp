#include "model/weight_loader.h"

#include <mutex>
#include <optional>
#include <span>

#include "weights/packed_model.h"
#include "weights/tensor_registry.h"

namespace sluice {
namespace {

// Rows packed at a time by one worker: whole panels, small enough to stay in cache.
constexpr std::int64_t kRowsPerBatch = kernels::kPanelColumns;

}  // namespace

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
  ops::PackedLinear packed =
      SLUICE_TRY(ops::PackedLinear::allocate(weight_format(preset_, name), row_count, columns));
  std::mutex error_mutex;
  std::optional<Error> first_error;
  pool_.for_ranges(row_count, kRowsPerBatch, [&](std::int64_t begin, std::int64_t end) {
    std::vector<bf16_t> batch(static_cast<std::size_t>(kRowsPerBatch * columns));
    for (std::int64_t row = begin; row < end; row += kRowsPerBatch) {
      const std::int64_t count = std::min(kRowsPerBatch, end - row);
      const std::span<bf16_t> out(batch.data(), static_cast<std::size_t>(count * columns));
      const Result<void> read =
          read_matrix_rows_bf16(checkpoint_, name, row_begin + row, count, out);
      if (!read) {
        const std::scoped_lock lock(error_mutex);
        first_error = read.error();
        return;
      }
      packed.set_rows(row, count, batch.data());
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
