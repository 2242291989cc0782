// A problem of full attention with its exact result in double.
#pragma once

#include <cmath>
#include <cstdint>
#include <vector>

#include "kernels/kernel_table.h"
#include "kernels/ref/table.h"
#include "kernels/test_support.h"

namespace sluice::kernels {

// One head with `keys` random keys and values, and `rows` queries.
class FullAttentionProblem {
 public:
  using Kernel = void (*)(const FullAttentionArgs&) noexcept;

  FullAttentionProblem(std::int64_t head_dim, std::int64_t keys, std::int64_t rows, double spread)
      : head_dim_(head_dim), keys_(keys), rows_(rows) {
    Random random(static_cast<std::uint64_t>(head_dim * 100000 + keys));
    const KvBlockLayout layout{head_dim};
    const std::int64_t blocks = (keys + kAttentionBlock - 1) / kAttentionBlock;
    kv_.assign(static_cast<std::size_t>(blocks * layout.head_elements()), 0);
    for (std::int64_t key = 0; key < keys; ++key) {
      k_.push_back(random.floats(head_dim, spread));
      v_.push_back(random.floats(head_dim, 1.0));
      std::vector<bf16_t> k(static_cast<std::size_t>(head_dim));
      ref::to_bf16(k_.back().data(), k.data(), head_dim);
      kv_store(k.data(), v_.back().data(), key % kAttentionBlock, layout,
               kv_.data() + key / kAttentionBlock * layout.head_elements());
    }
    q_.assign(static_cast<std::size_t>(rows * pad32(head_dim)), 0);
    for (std::int64_t row = 0; row < rows; ++row) {
      random.fill(q_.data() + row * pad32(head_dim), head_dim, Values::normal);
    }
  }

  // Rows [begin, end), at a stride that leaves room beside each.
  std::vector<bf16_t> run(Kernel kernel, std::int64_t begin, std::int64_t end) const {
    const std::int64_t stride = head_dim_ + 3;
    std::vector<bf16_t> out(static_cast<std::size_t>((end - begin) * stride), 0x4242);
    kernel({.q = q_.data() + begin * pad32(head_dim_),
            .out = out.data(),
            .out_stride = stride,
            .rows = end - begin,
            .head_dim = head_dim_,
            .kv = kv_.data(),
            .keys = keys_,
            .scale = scale()});
    return out;
  }
  std::vector<bf16_t> run(const KernelTable& table) const {
    return run(table.full_attention, 0, rows_);
  }

  // One row of the result, or with the magnitudes of the values: what roundings are relative to.
  std::vector<double> exact(std::int64_t row, bool magnitudes) const {
    std::vector<double> out(static_cast<std::size_t>(head_dim_), 0.0);
    double sum = 0.0;
    for (std::size_t key = 0; key < k_.size(); ++key) {
      double score = 0.0;
      for (std::size_t c = 0; c < out.size(); ++c) {
        const bf16_t q = q_[static_cast<std::size_t>(row * pad32(head_dim_)) + c];
        const bf16_t k = float_to_bf16(k_[key][c]);
        score += static_cast<double>(bf16_to_float(q)) * static_cast<double>(bf16_to_float(k));
      }
      const double weight = std::exp(score * static_cast<double>(scale()));
      sum += weight;
      for (std::size_t c = 0; c < out.size(); ++c) {
        const auto v = static_cast<double>(bf16_to_float(float_to_bf16(v_[key][c])));
        out[c] += weight * (magnitudes ? std::fabs(v) : v);
      }
    }
    for (double& value : out) {
      value /= sum;
    }
    return out;
  }

 private:
  float scale() const { return 1.0F / std::sqrt(static_cast<float>(head_dim_)); }

  std::int64_t head_dim_;
  std::int64_t keys_;
  std::int64_t rows_;
  std::vector<std::vector<float>> k_;
  std::vector<std::vector<float>> v_;
  std::vector<bf16_t> kv_;
  std::vector<bf16_t> q_;
};

}  // namespace sluice::kernels
