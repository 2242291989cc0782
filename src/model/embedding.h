// Token embeddings: rows read straight from the mapped checkpoint (bf16), widened to fp32.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "kernels/kernel_table.h"
#include "platform/thread_pool.h"
#include "weights/safetensors.h"

namespace sluice {

class Embedding {
 public:
  // The table `name` [vocab, hidden]. A BF16 table stays in the mapping, others are rounded to bf16
  // in memory. The checkpoint must outlive the object.
  static Result<Embedding> load(const Checkpoint& checkpoint, std::string_view name);

  // x[row] = table[token_ids[row]].
  void lookup(const kernels::KernelTable& table, ThreadPool& pool,
              std::span<const std::int32_t> token_ids, float* x) const;

 private:
  const std::byte* rows_ = nullptr;  // bf16, possibly unaligned
  std::int64_t hidden_size_ = 0;
  std::vector<bf16_t> converted_;
};

}  // namespace sluice
