#include <fmt/format.h>

#include <cmath>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "base/check.h"
#include "bench/kernels/kernel_case.h"
#include "model/layer_shapes.h"
#include "ops/gated_delta.h"
#include "platform/aligned_buffer.h"
#include "weights/random_weights.h"
#include "weights/released_shapes.h"

namespace sluice::bench {
namespace {

// Tokens the states have seen. Prefill begins by folding a full tail, as every 32nd token does; one
// row comes to a tail half full, as decode does on average.
constexpr std::int64_t kPrefillPosition = 512;
constexpr std::int64_t kDecodePosition = 512 + 16;
constexpr std::int64_t kStateRows = 64;  // rows that make a state of something

std::vector<float> random_f32(std::int64_t count, float deviation, std::uint64_t seed) {
  std::vector<float> values;
  for (const bf16_t value : random_bf16(static_cast<std::size_t>(count), deviation, seed)) {
    values.push_back(bf16_to_float(value));
  }
  return values;
}

// Inputs and scratch for `rows` rows, and states to take in turn.
class DeltaLayer {
 public:
  DeltaLayer(const ops::GatedDeltaShape& shape, std::int64_t rows, std::int64_t states)
      : shape_(shape),
        rows_(rows),
        u_(random_bf16(static_cast<std::size_t>(rows * shape.channels()), 1.0F, 1)),
        conv_weight_(random_f32(4 * shape.channels(), 0.3F, 2)),
        z_(random_f32(rows * shape.value_size(), 1.0F, 3)),
        g_(random_f32(rows * shape.value_heads, 0.1F, 4)),
        beta_(static_cast<std::size_t>(rows * shape.value_heads), 0.5F),
        norm_weight_(static_cast<std::size_t>(shape.value_dim), 1.0F),
        mixed_(u_.size()),
        q_(static_cast<std::size_t>(shape.key_heads * rows * kernels::pad32(shape.key_dim))),
        k_(q_.size()),
        o_(z_.size()),
        y_(static_cast<std::size_t>(rows * kernels::pad32(shape.value_size()))),
        states_(states) {
    for (float& g : g_) {
      g = -std::abs(g);  // a log decay
    }
    Result<AlignedBuffer> memory =
        AlignedBuffer::allocate(static_cast<std::size_t>(states * shape.state_bytes()));
    SLUICE_CHECK(memory.has_value());
    memory_ = std::move(*memory);
  }

  void forward(Machine& machine, std::int64_t position) {
    std::byte* state = memory_.data() + turn_++ % states_ * shape_.state_bytes();
    const ops::GatedDeltaSequence sequence{.position = position,
                                           .token_begin = 0,
                                           .token_count = rows_,
                                           .state = state,
                                           .checkpoints = {}};
    ops::gated_delta(machine.table(), machine.pool(),
                     {.shape = shape_,
                      .sequences = std::span(&sequence, 1),
                      .rows = rows_,
                      .state_offset = 0,
                      .u = u_.data(),
                      .conv_weight = conv_weight_.data(),
                      .z = z_.data(),
                      .g = g_.data(),
                      .beta = beta_.data(),
                      .norm_weight = norm_weight_.data(),
                      .eps = 1e-6F,
                      .mixed = mixed_.data(),
                      .q = q_.data(),
                      .k = k_.data(),
                      .o = o_.data(),
                      .y = y_.data()});
  }

  AlignedBuffer take_memory() { return std::move(memory_); }
  void set_memory(AlignedBuffer memory) { memory_ = std::move(memory); }

 private:
  ops::GatedDeltaShape shape_;
  std::int64_t rows_;
  std::vector<bf16_t> u_;
  std::vector<float> conv_weight_;
  std::vector<float> z_;
  std::vector<float> g_;
  std::vector<float> beta_;
  std::vector<float> norm_weight_;
  std::vector<float> mixed_;
  std::vector<bf16_t> q_;
  std::vector<bf16_t> k_;
  std::vector<float> o_;
  std::vector<bf16_t> y_;
  std::int64_t states_;
  std::int64_t turn_ = 0;
  AlignedBuffer memory_;
};

KernelCase delta_case(const ops::GatedDeltaShape& shape, const char* label, std::int64_t rows) {
  const auto state_bytes = static_cast<std::size_t>(shape.state_bytes());
  return {.name = fmt::format("gated_delta/{}/T{}", label, rows),
          .flops =
              6.0 * static_cast<double>(rows * shape.value_heads * shape.key_dim * shape.value_dim),
          .bytes = static_cast<double>(state_bytes),
          .prepare = [=](Machine& machine) -> Body {
            const std::int64_t states = machine.cold_copies(state_bytes);
            DeltaLayer filler(shape, kStateRows, states);
            for (std::int64_t i = 0; i < states; ++i) {
              filler.forward(machine, kPrefillPosition - kStateRows);
            }
            const auto layer = std::make_shared<DeltaLayer>(shape, rows, states);
            layer->set_memory(filler.take_memory());
            return [=, &machine] {
              layer->forward(machine, rows == 1 ? kDecodePosition : kPrefillPosition);
            };
          }};
}

}  // namespace

std::vector<KernelCase> gated_delta_cases() {
  std::vector<KernelCase> cases;
  for (const auto& [name, label] :
       {std::pair("qwen3.5-0.8b", "0.8b"), std::pair("qwen3.6-27b", "27b")}) {
    const ops::GatedDeltaShape shape = gated_delta_shape(released_config(name, 4).value());
    for (const std::int64_t rows : {1, 512}) {
      cases.push_back(delta_case(shape, label, rows));
    }
  }
  return cases;
}

}  // namespace sluice::bench
