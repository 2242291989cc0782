#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <numeric>
#include <span>
#include <utility>

#include "base/check.h"
#include "base/checked_math.h"
#include "bench/kernels/kernel_case.h"
#include "model/layer_shapes.h"
#include "ops/gated_attention.h"
#include "platform/aligned_buffer.h"
#include "weights/random_weights.h"
#include "weights/released_shapes.h"

namespace sluice::bench {
namespace {

struct Span {
  std::int64_t rows;  // the last `rows` of
  std::int64_t keys;  // `keys` tokens
};

std::vector<float> random_f32(std::int64_t count, std::uint64_t seed) {
  std::vector<float> values;
  for (const bf16_t value : random_bf16(static_cast<std::size_t>(count), 1.0F, seed)) {
    values.push_back(bf16_to_float(value));
  }
  return values;
}

// One layer's inputs, scratch and the keys and values of some sequences to take in turn.
class AttentionLayer {
 public:
  AttentionLayer(const ops::GatedAttentionShape& shape, const Span& span, std::int64_t sequences)
      : shape_(shape),
        span_(span),
        blocks_(ceil_div(span.keys, kernels::kAttentionBlock)),
        sequences_(sequences),
        qg_(random_f32(span.rows * shape.heads * 2 * shape.head_dim, 1)),
        k_(random_f32(span.rows * shape.kv_heads * shape.head_dim, 2)),
        v_(random_f32(span.rows * shape.kv_heads * shape.head_dim, 3)),
        weight_(static_cast<std::size_t>(shape.head_dim), 1.0F),
        cos_(static_cast<std::size_t>(span.rows * shape.rotary_dim / 2), 0.8F),
        sin_(cos_.size(), 0.6F),
        q_rotated_(
            static_cast<std::size_t>(span.rows * shape.heads * kernels::pad32(shape.head_dim))),
        attended_(static_cast<std::size_t>(span.rows * shape.heads * shape.head_dim)),
        y_(static_cast<std::size_t>(span.rows * kernels::pad32(shape.heads * shape.head_dim))),
        block_table_(static_cast<std::size_t>(blocks_ * sequences)) {
    std::iota(block_table_.begin(), block_table_.end(), 0);
    const std::int64_t bytes = blocks_ * sequences * block_bytes();
    Result<AlignedBuffer> memory = AlignedBuffer::allocate(static_cast<std::size_t>(bytes));
    SLUICE_CHECK(memory.has_value());
    kv_ = std::move(*memory);
  }

  void fill_keys(ThreadPool& pool) {
    const std::vector<bf16_t> pattern = random_bf16(std::size_t{1} << 19, 1.0F, 4);
    const auto bytes = static_cast<std::int64_t>(pattern.size() * sizeof(bf16_t));
    const auto* source = reinterpret_cast<const std::byte*>(pattern.data());
    pool.for_ranges(static_cast<std::int64_t>(kv_.size()), bytes,
                    [&](std::int64_t begin, std::int64_t end) {
                      for (std::int64_t at = begin; at < end; at += bytes) {
                        std::copy_n(source, std::min(bytes, end - at), kv_.data() + at);
                      }
                    });
  }

  void forward(Machine& machine) {
    const auto first = static_cast<std::size_t>(turn_++ % sequences_ * blocks_);
    const ops::AttentionSequence sequence{
        .position = span_.keys - span_.rows,
        .token_begin = 0,
        .token_count = span_.rows,
        .block_table = std::span(block_table_).subspan(first, static_cast<std::size_t>(blocks_))};
    ops::gated_attention(machine.table(), machine.pool(),
                         {.shape = shape_,
                          .sequences = std::span(&sequence, 1),
                          .rows = span_.rows,
                          .qg = qg_.data(),
                          .k = k_.data(),
                          .v = v_.data(),
                          .q_weight = weight_.data(),
                          .k_weight = weight_.data(),
                          .cos = cos_.data(),
                          .sin = sin_.data(),
                          .eps = 1e-6F,
                          .kv_blocks = kv_.data(),
                          .kv_block_stride = block_bytes(),
                          .q_rotated = q_rotated_.data(),
                          .attended = attended_.data(),
                          .y = y_.data()});
  }

 private:
  std::int64_t block_bytes() const { return shape_.kv_layout().bytes(shape_.kv_heads); }

  ops::GatedAttentionShape shape_;
  Span span_;
  std::int64_t blocks_;  // of one sequence
  std::int64_t sequences_;
  std::vector<float> qg_;
  std::vector<float> k_;
  std::vector<float> v_;
  std::vector<float> weight_;
  std::vector<float> cos_;
  std::vector<float> sin_;
  std::vector<bf16_t> q_rotated_;
  std::vector<float> attended_;
  std::vector<bf16_t> y_;
  std::vector<std::int32_t> block_table_;  // [sequence][blocks_]
  std::int64_t turn_ = 0;
  AlignedBuffer kv_;
};

KernelCase attention_case(const ops::GatedAttentionShape& shape, const char* label,
                          const Span& span) {
  const std::int64_t kv_bytes = 2 * span.keys * shape.kv_heads * shape.head_dim * 2;
  const auto seen =  // keys, summed over the rows
      static_cast<double>(span.rows) * static_cast<double>(2 * span.keys - span.rows + 1) / 2.0;
  return {.name = fmt::format("gated_attention/{}/T{}/keys{}", label, span.rows, span.keys),
          .flops = 4.0 * static_cast<double>(shape.heads * shape.head_dim) * seen,
          .bytes = static_cast<double>(kv_bytes),
          .prepare = [=](Machine& machine) -> Body {
            const auto layer = std::make_shared<AttentionLayer>(
                shape, span, machine.cold_copies(static_cast<std::size_t>(kv_bytes)));
            layer->fill_keys(machine.pool());
            return [=, &machine] { layer->forward(machine); };
          }};
}

}  // namespace

std::vector<KernelCase> attention_cases() {
  std::vector<KernelCase> cases;
  for (const auto& [name, label] :
       {std::pair("qwen3.5-0.8b", "0.8b"), std::pair("qwen3.6-27b", "27b")}) {
    const ops::GatedAttentionShape shape = attention_shape(released_config(name, 4).value());
    for (const Span& span : {Span{512, 8192}, Span{1, 4096}, Span{1, 32768}}) {
      cases.push_back(attention_case(shape, label, span));
    }
  }
  return cases;
}

}  // namespace sluice::bench
