#include "ops/full_attention.h"

#include <algorithm>
#include <cmath>

#include "base/checked_math.h"

namespace sluice::ops {
namespace {

using kernels::kAttentionBlock;
using kernels::pad32;

// Rows of one call of the kernel: all of them would be best for its caches, but every worker must
// find some.
constexpr std::int64_t kItemsPerWorker = 4;
constexpr std::int64_t kRowGrain = 32;

kernels::KvBlockLayout block_layout(const FullAttentionShape& shape) {
  return {shape.head_dim};
}

// Rows [begin, end) of a piece as keys and values of one head.
void store_head(const kernels::KernelTable& table, const StoreKeysArgs& args, std::int64_t head,
                std::int64_t begin, std::int64_t end) {
  const FullAttentionShape& shape = args.shape;
  const std::int64_t half = shape.head_dim / 2;
  const std::int64_t channel = head * shape.head_dim;
  bf16_t rotated[kernels::kFullAttentionHeadDimMax];
  for (std::int64_t row = begin; row < end; ++row) {
    float* k = args.kv_product + row * 2 * shape.size() + channel;
    float* v = k + shape.size();
    table.bias_rope({.x = k,
                     .bias = args.k_bias + channel,
                     .cos = args.cos + row * half,
                     .sin = args.sin + row * half,
                     .y = rotated,
                     .head_dim = shape.head_dim});
    table.add(v, args.v_bias + channel, shape.head_dim);
    const std::int64_t key = args.first + row;
    kernels::kv_store(rotated, v, key % kAttentionBlock, block_layout(shape),
                      args.kv + head * shape.head_elements() +
                          key / kAttentionBlock * block_layout(shape).head_elements());
  }
}

void rotate_row(const kernels::KernelTable& table, const AttendArgs& args, std::int64_t row) {
  const FullAttentionShape& shape = args.shape;
  const std::int64_t half = shape.head_dim / 2;
  for (std::int64_t head = 0; head < shape.heads; ++head) {
    const std::int64_t channel = head * shape.head_dim;
    table.bias_rope({.x = args.q_product + row * shape.size() + channel,
                     .bias = args.q_bias + channel,
                     .cos = args.cos + row * half,
                     .sin = args.sin + row * half,
                     .y = args.q_rotated + (head * args.rows + row) * pad32(shape.head_dim),
                     .head_dim = shape.head_dim});
  }
}

void attend_rows(const kernels::KernelTable& table, const AttendArgs& args, std::int64_t head,
                 std::int64_t begin, std::int64_t end) {
  const FullAttentionShape& shape = args.shape;
  table.full_attention({.q = args.q_rotated + (head * args.rows + begin) * pad32(shape.head_dim),
                        .out = args.out + begin * pad32(shape.size()) + head * shape.head_dim,
                        .out_stride = pad32(shape.size()),
                        .rows = end - begin,
                        .head_dim = shape.head_dim,
                        .kv = args.kv + head * shape.head_elements(),
                        .keys = shape.keys,
                        .scale = 1.0F / std::sqrt(static_cast<float>(shape.head_dim))});
}

// Deals (head, group of rows) to the workers in turn.
template <typename Work>
void for_heads_and_rows(ThreadPool& pool, std::int64_t heads, std::int64_t rows, std::int64_t group,
                        const Work& work) {
  const std::int64_t groups = ceil_div(rows, group);
  pool.run([&](int worker) {
    for (std::int64_t item = worker; item < heads * groups; item += pool.size()) {
      const std::int64_t begin = item % groups * group;
      work(item / groups, begin, std::min(rows, begin + group));
    }
  });
}

}  // namespace

std::int64_t FullAttentionShape::head_elements() const {
  return ceil_div(keys, kAttentionBlock) * block_layout(*this).head_elements();
}

void store_keys(const kernels::KernelTable& table, ThreadPool& pool, const StoreKeysArgs& args) {
  for_heads_and_rows(pool, args.shape.heads, args.rows, kAttentionBlock,
                     [&](std::int64_t head, std::int64_t begin, std::int64_t end) {
                       store_head(table, args, head, begin, end);
                     });
}

void attend(const kernels::KernelTable& table, ThreadPool& pool, const AttendArgs& args) {
  const std::int64_t size = args.shape.size();
  pool.for_ranges(args.rows, 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t row = begin; row < end; ++row) {
      rotate_row(table, args, row);
      bf16_t* out = args.out + row * pad32(size);
      std::fill(out + size, out + pad32(size), bf16_t{0});
    }
  });
  const std::int64_t groups_wanted = ceil_div(kItemsPerWorker * pool.size(), args.shape.heads);
  const std::int64_t group = round_up(ceil_div(args.rows, groups_wanted), kRowGrain);
  for_heads_and_rows(pool, args.shape.heads, args.rows, group,
                     [&](std::int64_t head, std::int64_t begin, std::int64_t end) {
                       attend_rows(table, args, head, begin, end);
                     });
}

}  // namespace sluice::ops
