#include "ops/gated_attention.h"

#include <algorithm>
#include <cmath>

namespace sluice::ops {
namespace {

// Query rows of one KV head are stored as index = row * group + head within the group.
bf16_t* query_row(const GatedAttentionArgs& args, std::int64_t kv_head, std::int64_t index) {
  const std::int64_t rows = args.rows * args.shape.group();
  return args.q_rotated + (kv_head * rows + index) * kernels::pad32(args.shape.head_dim);
}

kernels::NormRopeArgs norm_rope_args(const GatedAttentionArgs& args, std::int64_t row,
                                     const float* x, const float* weight, bf16_t* y) {
  const std::int64_t half = args.shape.rotary_dim / 2;
  return {.x = x,
          .weight = weight,
          .cos = args.cos + row * half,
          .sin = args.sin + row * half,
          .y = y,
          .head_dim = args.shape.head_dim,
          .half = half,
          .eps = args.eps};
}

void rotate_queries(const kernels::KernelTable& table, const GatedAttentionArgs& args,
                    std::int64_t row) {
  const GatedAttentionShape& shape = args.shape;
  for (std::int64_t head = 0; head < shape.heads; ++head) {
    const float* q = args.qg + (row * shape.heads + head) * 2 * shape.head_dim;
    bf16_t* y = query_row(args, head / shape.group(), row * shape.group() + head % shape.group());
    table.norm_rope(norm_rope_args(args, row, q, args.q_weight, y));
  }
}

void store_keys(const kernels::KernelTable& table, const GatedAttentionArgs& args,
                const AttentionSequence& sequence, std::int64_t row) {
  const GatedAttentionShape& shape = args.shape;
  const std::int64_t position = sequence.position + row - sequence.token_begin;
  const std::int64_t block =
      sequence.block_table[static_cast<std::size_t>(position / kernels::kAttentionBlock)];
  auto* base = reinterpret_cast<bf16_t*>(args.kv_blocks + block * args.kv_block_stride);
  bf16_t rotated[kernels::kHeadDimMax];
  for (std::int64_t head = 0; head < shape.kv_heads; ++head) {
    const std::int64_t at = (row * shape.kv_heads + head) * shape.head_dim;
    table.norm_rope(norm_rope_args(args, row, args.k + at, args.k_weight, rotated));
    kernels::kv_store(rotated, args.v + at, position % kernels::kAttentionBlock, shape.kv_layout(),
                      base + head * shape.kv_layout().head_elements());
  }
}

// Query rows [begin, begin + count) of a sequence and KV head, count <= kAttentionRowsMax.
void attend(const kernels::KernelTable& table, const GatedAttentionArgs& args,
            const AttentionSequence& sequence, std::int64_t kv_head, std::int64_t begin,
            std::int64_t count) {
  const GatedAttentionShape& shape = args.shape;
  std::int64_t visible[kernels::kAttentionRowsMax];
  std::int64_t out_offset[kernels::kAttentionRowsMax];
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t token = (begin + i) / shape.group();
    const std::int64_t head = kv_head * shape.group() + (begin + i) % shape.group();
    visible[i] = sequence.position + token + 1;
    out_offset[i] = ((sequence.token_begin + token) * shape.heads + head) * shape.head_dim;
  }
  const std::int64_t head_bytes =
      shape.kv_layout().head_elements() * static_cast<std::int64_t>(sizeof(bf16_t));
  table.attention({.q = query_row(args, kv_head, sequence.token_begin * shape.group() + begin),
                   .visible = visible,
                   .out = args.attended,
                   .out_offset = out_offset,
                   .rows = count,
                   .head_dim = shape.head_dim,
                   .kv_blocks = args.kv_blocks + kv_head * head_bytes,
                   .kv_block_stride = args.kv_block_stride,
                   .block_table = sequence.block_table.data(),
                   .scale = 1.0F / std::sqrt(static_cast<float>(shape.head_dim))});
}

// Query rows that meet the keys together, so that there is work for all: rows do not see each
// other.
std::int64_t rows_at_once(const ThreadPool& pool, const GatedAttentionArgs& args) {
  constexpr std::int64_t kRowsMin = 32;
  constexpr std::int64_t kItemsPerWorker = 4;
  const std::int64_t rows = args.rows * args.shape.heads / (kItemsPerWorker * pool.size());
  return std::clamp(rows / kRowsMin * kRowsMin, kRowsMin, kernels::kAttentionRowsMax);
}

// Deals the groups of query rows to the workers in turn: later rows see more keys, so contiguous
// shares would be uneven.
void attend_all(const kernels::KernelTable& table, ThreadPool& pool,
                const GatedAttentionArgs& args) {
  const std::int64_t rows_max = rows_at_once(pool, args);
  pool.run([&](int worker) {
    std::int64_t item = 0;
    for (const AttentionSequence& sequence : args.sequences) {
      const std::int64_t query_rows = sequence.token_count * args.shape.group();
      for (std::int64_t kv_head = 0; kv_head < args.shape.kv_heads; ++kv_head) {
        for (std::int64_t begin = 0; begin < query_rows; begin += rows_max) {
          if (item++ % pool.size() == worker) {
            attend(table, args, sequence, kv_head, begin, std::min(rows_max, query_rows - begin));
          }
        }
      }
    }
  });
}

void gate_rows(const kernels::KernelTable& table, const GatedAttentionArgs& args,
               std::int64_t begin, std::int64_t end) {
  const GatedAttentionShape& shape = args.shape;
  const std::int64_t size = shape.heads * shape.head_dim;
  const std::int64_t width = kernels::pad32(size);
  for (std::int64_t row = begin; row < end; ++row) {
    for (std::int64_t head = 0; head < shape.heads; ++head) {
      const std::int64_t at = (row * shape.heads + head) * shape.head_dim;
      const float* gate = args.qg + 2 * at + shape.head_dim;
      table.sigmoid_mul(args.attended + at, gate, args.y + row * width + head * shape.head_dim,
                        shape.head_dim);
    }
    std::fill(args.y + row * width + size, args.y + (row + 1) * width, bf16_t{0});
  }
}

}  // namespace

void gated_attention(const kernels::KernelTable& table, ThreadPool& pool,
                     const GatedAttentionArgs& args) {
  pool.for_ranges(args.rows, 1, [&](std::int64_t begin, std::int64_t end) {
    for (const AttentionSequence& sequence : args.sequences) {
      const std::int64_t first = std::max(begin, sequence.token_begin);
      const std::int64_t last = std::min(end, sequence.token_begin + sequence.token_count);
      for (std::int64_t row = first; row < last; ++row) {
        rotate_queries(table, args, row);
        store_keys(table, args, sequence, row);
      }
    }
  });
  attend_all(table, pool, args);
  pool.for_ranges(args.rows, 1, [&](std::int64_t begin, std::int64_t end) {
    gate_rows(table, args, begin, end);
  });
}

}  // namespace sluice::ops
