// Inputs and problems for the kernel tests: seeded random values, a KV cache with scattered blocks,
// a delta-rule sequence with its exact result in double.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "kernels/kernel_table.h"
#include "platform/aligned_buffer.h"
#include "tensor/scalar.h"

namespace sluice::kernels {

inline constexpr float kCanary = 12345.0F;  // what nobody may overwrite

enum class Values { normal, wide, subnormal, huge };

class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed * 0x9E3779B97F4A7C15ULL + 1) {}

  double uniform() {  // [0, 1)
    state_ ^= state_ << 13;
    state_ ^= state_ >> 7;
    state_ ^= state_ << 17;
    return static_cast<double>(state_ >> 11) * 0x1p-53;
  }
  double normal() {  // close enough: sum of uniforms
    double sum = -6.0;
    for (int i = 0; i < 12; ++i) {
      sum += uniform();
    }
    return sum;
  }
  std::vector<float> floats(std::int64_t count, double scale) {
    std::vector<float> x(static_cast<std::size_t>(count));
    for (float& value : x) {
      value = static_cast<float>(normal() * scale);
    }
    return x;
  }
  bf16_t bf16(Values values) {
    switch (values) {
      case Values::normal:
        return float_to_bf16(static_cast<float>(normal()));
      case Values::wide:
        return float_to_bf16(
            static_cast<float>(std::ldexp(normal(), static_cast<int>(uniform() * 80) - 40)));
      case Values::subnormal:  // bf16 subnormals among values whose products underflow
        return uniform() < 0.3 ? static_cast<bf16_t>(uniform() * 0x80)
                               : float_to_bf16(static_cast<float>(std::ldexp(normal(), -63)));
      case Values::huge:  // sums near and beyond overflow
        return float_to_bf16(static_cast<float>(std::ldexp(normal(), 61)));
    }
    return 0;
  }
  void fill(bf16_t* x, std::int64_t count, Values values) {
    for (std::int64_t i = 0; i < count; ++i) {
      x[i] = bf16(values);
    }
  }
  std::vector<bf16_t> bf16s(std::int64_t count, Values values) {
    std::vector<bf16_t> x(static_cast<std::size_t>(count));
    fill(x.data(), count, values);
    return x;
  }
  // Rows of activations, in tiles; what lies beyond the last row is NaN.
  std::vector<bf16_t> row_tiles(std::int64_t rows, std::int64_t k, Values values) {
    std::vector<bf16_t> tiles(static_cast<std::size_t>(row_tiles_elements(rows, k)), 0x7fff);
    std::vector<bf16_t> x(static_cast<std::size_t>(kRowsOfTile * pad32(k)), 0);
    for (std::int64_t row = 0; row < rows; row += kRowsOfTile) {
      const std::int64_t count = std::min(kRowsOfTile, rows - row);
      for (std::int64_t r = 0; r < count; ++r) {
        fill(x.data() + r * pad32(k), k, values);
      }
      tile_rows(x.data(), count, pad32(k) / kStepK, tiles.data() + row * pad32(k));
    }
    return tiles;
  }

 private:
  std::uint64_t state_;
};

inline AlignedBuffer pack(WeightFormat format, const std::vector<bf16_t>& w, std::int64_t n,
                          std::int64_t k) {
  AlignedBuffer packed =
      *AlignedBuffer::allocate(static_cast<std::size_t>(packed_bytes(format, n, k)));
  pack_weight_rows(format, {.values = w.data()}, 0, n, k, packed.data());
  return packed;
}

// A whole product of floats.
struct GemmSize {
  std::int64_t m;
  std::int64_t n;
  std::int64_t k;
  std::int64_t slices;
};
inline GemmArgs gemm_args(const GemmSize& size, const std::vector<bf16_t>& a,
                          const AlignedBuffer& w, std::vector<float>& out) {
  return {.a = a.data(),
          .w = w.data(),
          .out = out.data(),
          .out_stride = size.n,
          .m = size.m,
          .n = size.n,
          .k_steps = pad32(size.k) / kStepK,
          .k_slices = size.slices,
          .panel_begin = 0,
          .panel_end = pad32(size.n) / kPanelColumns};
}

// The product of a table for bf16 or fp8.
inline void gemm(const KernelTable& table, WeightFormat format, const GemmArgs& args) {
  (format == WeightFormat::bf16 ? table.gemm_bf16 : table.gemm_fp8)(args);
}
inline constexpr WeightFormat kFloatFormats[] = {WeightFormat::bf16, WeightFormat::fp8};

// Elements whose bits differ; two NaNs count as equal (payloads are not part of the contract).
template <typename T>
std::int64_t differences(const std::vector<T>& a, const std::vector<T>& b) {
  if (a.size() != b.size()) {
    return -1;
  }
  std::int64_t count = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const bool same = std::memcmp(&a[i], &b[i], sizeof(T)) == 0;
    const bool both_nan = a[i] != a[i] && b[i] != b[i];
    count += same || both_nan ? 0 : 1;
  }
  return count;
}

// One KV head with `tokens` random keys and values in blocks at shuffled ids.
class AttentionProblem {
 public:
  struct Query {
    std::vector<bf16_t> q;
    std::vector<std::int64_t> visible;

    Query only(std::int64_t row, std::int64_t head_dim) const {
      const auto width = static_cast<std::ptrdiff_t>(pad32(head_dim));
      return {{q.begin() + row * width, q.begin() + (row + 1) * width},
              {visible[static_cast<std::size_t>(row)]}};
    }
  };

  AttentionProblem(std::int64_t head_dim, std::int64_t tokens, Random& random)
      : head_dim_(head_dim), layout_{head_dim}, keys_(), values_() {
    const std::int64_t blocks = (tokens + kAttentionBlock - 1) / kAttentionBlock;
    memory_.assign(static_cast<std::size_t>(blocks * layout_.head_elements()), 0);
    for (std::int64_t b = 0; b < blocks; ++b) {
      table_.push_back(static_cast<std::int32_t>((b * 7 + 3) % blocks));
    }
    if (blocks % 7 == 0) {
      for (std::int64_t b = 0; b < blocks; ++b) {
        table_[static_cast<std::size_t>(b)] = static_cast<std::int32_t>(blocks - 1 - b);
      }
    }
    for (std::int64_t t = 0; t < tokens; ++t) {
      const std::vector<bf16_t> k = random.bf16s(head_dim, Values::normal);
      const std::vector<float> v = random.floats(head_dim, 1.0);
      bf16_t* block = memory_.data() + table_[static_cast<std::size_t>(t / kAttentionBlock)] *
                                           layout_.head_elements();
      kv_store(k.data(), v.data(), t % kAttentionBlock, layout_, block);
      keys_.push_back(k);
      values_.push_back(v);
    }
  }

  // `rows` queries, pairs at the same position, the last one sees `last` keys.
  Query query(std::int64_t last, std::int64_t rows, Random& random) const {
    Query query;
    query.q.assign(static_cast<std::size_t>(rows * pad32(head_dim_)), 0);
    for (std::int64_t row = 0; row < rows; ++row) {
      random.fill(query.q.data() + row * pad32(head_dim_), head_dim_, Values::normal);
      query.visible.push_back(std::max<std::int64_t>(1, last - (rows - 1 - row) / 2));
    }
    return query;
  }

  std::vector<float> run(const KernelTable& table, const Query& query) const {
    const auto rows = static_cast<std::int64_t>(query.visible.size());
    std::vector<float> out(static_cast<std::size_t>(rows * head_dim_));
    std::vector<std::int64_t> offsets;
    for (std::int64_t row = 0; row < rows; ++row) {
      offsets.push_back(row * head_dim_);
    }
    table.attention({.q = query.q.data(),
                     .visible = query.visible.data(),
                     .out = out.data(),
                     .out_offset = offsets.data(),
                     .rows = rows,
                     .head_dim = head_dim_,
                     .kv_blocks = reinterpret_cast<const std::byte*>(memory_.data()),
                     .kv_block_stride = layout_.head_elements() * 2,
                     .block_table = table_.data(),
                     .scale = scale()});
    return out;
  }

  std::vector<double> exact(const Query& query) const {
    std::vector<double> out;
    for (std::size_t row = 0; row < query.visible.size(); ++row) {
      const bf16_t* q = query.q.data() + static_cast<std::int64_t>(row) * pad32(head_dim_);
      std::vector<double> sum(static_cast<std::size_t>(head_dim_), 0.0);
      double weights = 0.0;
      for (std::size_t t = 0; t < static_cast<std::size_t>(query.visible[row]); ++t) {
        double score = 0.0;
        for (std::size_t c = 0; c < sum.size(); ++c) {
          score += static_cast<double>(bf16_to_float(q[c])) *
                   static_cast<double>(bf16_to_float(keys_[t][c]));
        }
        const double weight = std::exp(score * static_cast<double>(scale()));
        weights += weight;
        for (std::size_t c = 0; c < sum.size(); ++c) {
          sum[c] += weight * static_cast<double>(bf16_to_float(float_to_bf16(values_[t][c])));
        }
      }
      for (const double value : sum) {
        out.push_back(value / weights);
      }
    }
    return out;
  }

 private:
  float scale() const { return 1.0F / std::sqrt(static_cast<float>(head_dim_)); }

  std::int64_t head_dim_;
  KvBlockLayout layout_;
  std::vector<bf16_t> memory_;
  std::vector<std::int32_t> table_;
  std::vector<std::vector<bf16_t>> keys_;
  std::vector<std::vector<float>> values_;
};

enum class DeltaInputs { realistic, no_decay, same_key, hard_resets };

// One value head with its key head, T rows, state kept as the engine keeps it.
class DeltaProblem {
 public:
  struct Outcome {
    std::vector<float> out;
    std::vector<std::byte> state;  // planes and tail of the value head
  };

  DeltaProblem(std::int64_t key_dim, std::int64_t value_dim, std::int64_t rows, DeltaInputs inputs)
      : layout_{key_dim, value_dim}, rows_(rows) {
    Random random(static_cast<std::uint64_t>(key_dim + rows) + static_cast<std::uint64_t>(inputs));
    q_.assign(static_cast<std::size_t>(rows * pad32(key_dim)), 0);
    k_ = q_;
    v_ = random.floats(rows * value_dim, 1.0);
    for (std::int64_t t = 0; t < rows; ++t) {
      unit_row(random, q_, t, 0.5);
      if (inputs == DeltaInputs::same_key && t > 0) {
        std::copy_n(k_.begin(), pad32(key_dim), k_.begin() + t * pad32(key_dim));
      } else {
        unit_row(random, k_, t, 0.5);
      }
      double g = -std::exp(random.uniform() * 6 - 6);
      if (inputs == DeltaInputs::no_decay) {
        g = -1e-4;
      }
      if (inputs == DeltaInputs::hard_resets && random.uniform() < 0.1) {
        g = -60.0;
      }
      g_.push_back(static_cast<float>(g));
      beta_.push_back(
          static_cast<float>(inputs == DeltaInputs::same_key ? 0.999 : random.uniform()));
    }
  }

  // Rows in calls of the given sizes, repeated; never across the 32-row grid.
  Outcome run(const KernelTable& table, const std::vector<std::int64_t>& grouping) const {
    std::vector<std::byte> head(static_cast<std::size_t>(layout_.value_head_bytes()));
    std::vector<bf16_t> tail_k(static_cast<std::size_t>(layout_.tail_k_bytes() / 2), 0);
    Outcome outcome;
    outcome.out.assign(static_cast<std::size_t>(rows_ * layout_.value_dim), 0.0F);
    std::int64_t m = 0;
    std::size_t call = 0;
    for (std::int64_t t = 0; t < rows_;) {
      if (m == kGdnChunk) {
        table.gdn_fold({.value_head = head.data(), .tail_k = tail_k.data(), .layout = layout_});
        m = 0;
      }
      const std::int64_t wanted = grouping[call++ % grouping.size()];
      const std::int64_t n = std::min({wanted, kGdnChunk - m, rows_ - t});
      const bf16_t* k = k_.data() + t * pad32(layout_.key_dim);
      gdn_append_keys(k, m, n, layout_.key_dim, tail_k.data());
      table.gdn_chunk({.value_head = head.data(),
                       .tail_k = tail_k.data(),
                       .q = q_.data() + t * pad32(layout_.key_dim),
                       .k = k,
                       .v = v_.data() + t * layout_.value_dim,
                       .v_stride = layout_.value_dim,
                       .g = g_.data() + t,
                       .beta = beta_.data() + t,
                       .gate_stride = 1,
                       .out = outcome.out.data() + t * layout_.value_dim,
                       .out_stride = layout_.value_dim,
                       .m0 = m,
                       .n = n,
                       .layout = layout_});
      m += n;
      t += n;
    }
    outcome.state = head;
    return outcome;
  }

  // The recurrence in double on the same bf16 queries and keys.
  std::vector<double> exact() const {
    const auto dk = static_cast<std::size_t>(layout_.key_dim);
    const auto dv = static_cast<std::size_t>(layout_.value_dim);
    std::vector<double> state(dk * dv, 0.0);
    std::vector<double> out;
    for (std::size_t t = 0; t < static_cast<std::size_t>(rows_); ++t) {
      const bf16_t* q = q_.data() + t * static_cast<std::size_t>(pad32(layout_.key_dim));
      const bf16_t* k = k_.data() + t * static_cast<std::size_t>(pad32(layout_.key_dim));
      const double keep = std::exp(static_cast<double>(g_[t]));
      for (std::size_t c = 0; c < dv; ++c) {
        double seen = 0.0;
        for (std::size_t d = 0; d < dk; ++d) {
          state[d * dv + c] *= keep;
          seen += state[d * dv + c] * static_cast<double>(bf16_to_float(k[d]));
        }
        const double u =
            static_cast<double>(beta_[t]) * (static_cast<double>(v_[t * dv + c]) - seen);
        double o = 0.0;
        for (std::size_t d = 0; d < dk; ++d) {
          state[d * dv + c] += static_cast<double>(bf16_to_float(k[d])) * u;
          o += state[d * dv + c] * static_cast<double>(bf16_to_float(q[d]));
        }
        out.push_back(o / std::sqrt(static_cast<double>(dk)));
      }
    }
    return out;
  }

 private:
  void unit_row(Random& random, std::vector<bf16_t>& rows, std::int64_t t, double mean) const {
    const std::vector<float> x = random.floats(layout_.key_dim, 1.0);
    double square = 0.0;
    for (const float value : x) {
      square += std::pow(static_cast<double>(value) + mean, 2);
    }
    for (std::int64_t d = 0; d < layout_.key_dim; ++d) {
      const double value = (static_cast<double>(x[static_cast<std::size_t>(d)]) + mean);
      rows[static_cast<std::size_t>(t * pad32(layout_.key_dim) + d)] =
          float_to_bf16(static_cast<float>(value / std::sqrt(square)));
    }
  }

  GdnStateLayout layout_;
  std::int64_t rows_;
  std::vector<bf16_t> q_;
  std::vector<bf16_t> k_;
  std::vector<float> v_;
  std::vector<float> g_;
  std::vector<float> beta_;
};

}  // namespace sluice::kernels
