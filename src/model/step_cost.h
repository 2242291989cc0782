// What a step costs at least: the operations of its products and the bytes it must read. Arithmetic
// on the config; with a machine's ceilings it says how fast a step could be at best (roofline).
#pragma once

#include <cstddef>
#include <cstdint>

#include "weights/model_config.h"
#include "weights/weight_preset.h"

namespace sluice {

struct StepCost {
  double flops = 0.0;     // a multiply-add counts as two
  double int8_ops = 0.0;  // the same of integer products
  double bytes = 0.0;     // read from memory
};

// A prompt of `tokens` >= 1, computed from nothing in steps of at most `step_tokens` >= 1; logits
// of its last row alone.
struct PrefillShape {
  std::int64_t tokens = 1;
  std::int64_t step_tokens = 1;
};

// One step that adds a token to each of `batch` sequences which have `context` tokens.
struct DecodeShape {
  std::int64_t context = 0;
  std::int64_t batch = 1;
};

// What one step reads of weights, head included (Qwen3_5::weight_bytes()), and how they are held.
struct WeightReads {
  std::size_t bytes = 0;
  WeightPreset preset = WeightPreset::bf16;
};

// flops: 2 per weight and token (head: per row of logits); attention 4 x heads x head_dim per
// (row, key it sees); delta rule 6 x key_dim x value_dim per value head and token, the three
// products of the plain recurrence (chunked forms do more work for the same result). Norms, gates
// and the convolution count nothing.
// bytes: weights once per step (head: when logits are wanted), keys and values of the tokens before
// it, and the recurrent state. Embedding rows, activations and writes count nothing.
StepCost prefill_cost(const ModelConfig& config, const WeightReads& weights,
                      const PrefillShape& shape);
StepCost decode_cost(const ModelConfig& config, const WeightReads& weights,
                     const DecodeShape& shape);

struct MachineRates {
  double flop_per_s = 0.0;
  double int8_op_per_s = 0.0;
  double byte_per_s = 0.0;
};

// Seconds that `cost` takes at least: the longer of computing and reading, since they overlap.
double roofline_seconds(const StepCost& cost, const MachineRates& rates);

// Whether computing, not reading, is the longer of the two.
bool is_compute_bound(const StepCost& cost, const MachineRates& rates);

}  // namespace sluice
