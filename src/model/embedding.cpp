#include "model/embedding.h"

#include <cstring>

#include "weights/tensor_registry.h"

namespace sluice {

Result<Embedding> Embedding::load(const Checkpoint& checkpoint, std::string_view name) {
  const TensorView* tensor = checkpoint.find(name);
  if (tensor == nullptr || tensor->shape.size() != 2) {
    return fail(ErrorCode::corrupt_data, "tensor " + std::string(name) + " is missing",
                std::string(name));
  }
  Embedding embedding;
  embedding.hidden_size_ = tensor->shape[1];
  if (tensor->dtype == DType::bf16) {
    embedding.rows_ = tensor->bytes.data();
    return embedding;
  }
  embedding.converted_.resize(static_cast<std::size_t>(element_count(tensor->shape)));
  SLUICE_TRY(read_matrix_rows_bf16(checkpoint, name, 0, tensor->shape[0], embedding.converted_));
  embedding.rows_ = reinterpret_cast<const std::byte*>(embedding.converted_.data());
  return embedding;
}

void Embedding::lookup(const kernels::KernelTable& table, ThreadPool& pool,
                       std::span<const std::int32_t> token_ids, float* x) const {
  pool.for_ranges(static_cast<std::int64_t>(token_ids.size()), 1,
                  [&](std::int64_t begin, std::int64_t end) {
                    for (std::int64_t row = begin; row < end; ++row) {
                      // The mapping gives no alignment: copy a piece, then widen it.
                      bf16_t piece[256];
                      const std::byte* from =
                          rows_ + token_ids[static_cast<std::size_t>(row)] * hidden_size_ * 2;
                      for (std::int64_t c = 0; c < hidden_size_; c += 256) {
                        const std::int64_t count = std::min<std::int64_t>(256, hidden_size_ - c);
                        std::memcpy(piece, from + c * 2, static_cast<std::size_t>(count) * 2);
                        table.to_f32(piece, x + row * hidden_size_ + c, count);
                      }
                    }
                  });
}

}  // namespace sluice
