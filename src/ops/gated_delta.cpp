#include "ops/gated_delta.h"

#include <algorithm>

namespace sluice::ops {
namespace {

constexpr std::int64_t kHistory = kernels::kConvTaps - 1;

// Channels [begin, end) of the last three inputs after `rows` rows of the slice. `history` holds
// those before it; `out` may be the same.
void keep_history(const bf16_t* u, std::int64_t channels, const bf16_t* history, std::int64_t rows,
                  std::int64_t begin, std::int64_t end, bf16_t* out) {
  for (std::int64_t row = 0; row < kHistory; ++row) {
    const std::int64_t source = rows + row - kHistory;  // < 0: an older input
    const bf16_t* from =
        source < 0 ? history + (source + kHistory) * channels : u + source * channels;
    std::copy(from + begin, from + end, out + row * channels + begin);
  }
}

// Channels [begin, end) of all rows of a sequence; then the last three inputs become its history.
void convolve(const kernels::KernelTable& table, const GatedDeltaArgs& args,
              const GatedDeltaSequence& sequence, std::int64_t begin, std::int64_t end) {
  const std::int64_t channels = args.shape.channels();
  const std::size_t conv_offset =
      args.state_offset + static_cast<std::size_t>(args.shape.conv_offset());
  auto* history = reinterpret_cast<bf16_t*>(sequence.state + conv_offset);
  const bf16_t* u = args.u + sequence.token_begin * channels;
  table.conv_silu({.u = u + begin,
                   .u_stride = channels,
                   .history = history + begin,
                   .history_stride = channels,
                   .weight = args.conv_weight + begin,
                   .weight_stride = channels,
                   .out = args.mixed + sequence.token_begin * channels + begin,
                   .out_stride = channels,
                   .rows = sequence.token_count,
                   .channels = end - begin});
  for (const GatedDeltaCheckpoint& checkpoint : sequence.checkpoints) {
    keep_history(u, channels, history, checkpoint.rows, begin, end,
                 reinterpret_cast<bf16_t*>(checkpoint.state + conv_offset));
  }
  keep_history(u, channels, history, sequence.token_count, begin, end, history);
}

// Queries and keys of one key head, for the rows of a sequence.
void normalise_keys(const kernels::KernelTable& table, const GatedDeltaArgs& args,
                    const GatedDeltaSequence& sequence, std::int64_t key_head) {
  const GatedDeltaShape& shape = args.shape;
  const std::int64_t width = kernels::pad32(shape.key_dim);
  for (std::int64_t t = 0; t < sequence.token_count; ++t) {
    const std::int64_t row = sequence.token_begin + t;
    const float* q = args.mixed + row * shape.channels() + key_head * shape.key_dim;
    const std::int64_t at = (key_head * args.rows + row) * width;
    table.l2_norm({.x = q, .y = args.q + at, .size = shape.key_dim});
    table.l2_norm({.x = q + shape.key_size(), .y = args.k + at, .size = shape.key_dim});
  }
}

// The delta rule of one key head and its value heads over the rows of a sequence, cut at the
// 32-token grid of absolute positions.
void advance(const kernels::KernelTable& table, const GatedDeltaArgs& args,
             const GatedDeltaSequence& sequence, std::int64_t key_head) {
  const GatedDeltaShape& shape = args.shape;
  const kernels::GdnStateLayout layout = shape.head_layout();
  const std::int64_t width = kernels::pad32(shape.key_dim);
  const std::size_t offset =
      args.state_offset +
      static_cast<std::size_t>(key_head) * static_cast<std::size_t>(shape.key_head_bytes());
  std::byte* base = sequence.state + offset;
  auto* tail_k = reinterpret_cast<bf16_t*>(base);
  std::byte* value_heads = base + layout.tail_k_bytes();

  std::span<const GatedDeltaCheckpoint> checkpoints = sequence.checkpoints;
  std::int64_t tail_rows = kernels::gdn_tail_rows(sequence.position);
  for (std::int64_t t = 0; t < sequence.token_count;) {
    if (tail_rows == kernels::kGdnChunk) {
      for (std::int64_t j = 0; j < shape.heads_per_key(); ++j) {
        table.gdn_fold({.value_head = value_heads + j * layout.value_head_bytes(),
                        .tail_k = tail_k,
                        .layout = layout});
      }
      tail_rows = 0;
    }
    const std::int64_t n = std::min(kernels::kGdnChunk - tail_rows, sequence.token_count - t);
    const std::int64_t row = sequence.token_begin + t;
    const bf16_t* q = args.q + (key_head * args.rows + row) * width;
    const bf16_t* k = args.k + (key_head * args.rows + row) * width;
    kernels::gdn_append_keys(k, tail_rows, n, shape.key_dim, tail_k);
    for (std::int64_t j = 0; j < shape.heads_per_key(); ++j) {
      const std::int64_t head = key_head * shape.heads_per_key() + j;
      table.gdn_chunk(
          {.value_head = value_heads + j * layout.value_head_bytes(),
           .tail_k = tail_k,
           .q = q,
           .k = k,
           .v = args.mixed + row * shape.channels() + 2 * shape.key_size() + head * shape.value_dim,
           .v_stride = shape.channels(),
           .g = args.g + row * shape.value_heads + head,
           .beta = args.beta + row * shape.value_heads + head,
           .gate_stride = shape.value_heads,
           .out = args.o + row * shape.value_size() + head * shape.value_dim,
           .out_stride = shape.value_size(),
           .m0 = tail_rows,
           .n = n,
           .layout = layout});
    }
    tail_rows += n;
    t += n;
    if (!checkpoints.empty() && checkpoints.front().rows == t) {
      std::copy_n(base, shape.key_head_bytes(), checkpoints.front().state + offset);
      checkpoints = checkpoints.subspan(1);
    }
  }
}

void gate_rows(const kernels::KernelTable& table, const GatedDeltaArgs& args, std::int64_t begin,
               std::int64_t end) {
  const GatedDeltaShape& shape = args.shape;
  const std::int64_t width = kernels::pad32(shape.value_size());
  for (std::int64_t row = begin; row < end; ++row) {
    bf16_t* y = args.y + row * width;
    for (std::int64_t head = 0; head < shape.value_heads; ++head) {
      const std::int64_t at = row * shape.value_size() + head * shape.value_dim;
      table.gated_norm({.x = args.o + at,
                        .z = args.z + at,
                        .weight = args.norm_weight,
                        .y = y + head * shape.value_dim,
                        .size = shape.value_dim,
                        .eps = args.eps});
    }
    std::fill(y + shape.value_size(), y + width, bf16_t{0});
  }
}

}  // namespace

void gated_delta(const kernels::KernelTable& table, ThreadPool& pool, const GatedDeltaArgs& args) {
  pool.for_ranges(args.shape.channels(), 16, [&](std::int64_t begin, std::int64_t end) {
    for (const GatedDeltaSequence& sequence : args.sequences) {
      convolve(table, args, sequence, begin, end);
    }
  });
  const auto items = static_cast<std::int64_t>(args.sequences.size()) * args.shape.key_heads;
  pool.for_ranges(items, 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t item = begin; item < end; ++item) {
      const auto& sequence = args.sequences[static_cast<std::size_t>(item / args.shape.key_heads)];
      const std::int64_t key_head = item % args.shape.key_heads;
      normalise_keys(table, args, sequence, key_head);
      advance(table, args, sequence, key_head);
    }
  });
  pool.for_ranges(args.rows, 1, [&](std::int64_t begin, std::int64_t end) {
    gate_rows(table, args, begin, end);
  });
}

}  // namespace sluice::ops
