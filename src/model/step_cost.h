// What a step costs at least: the operations of its products and the bytes it must read. Arithmetic
// on the config; with a machine's ceilings it says how fast a step could be at best (roofline).
#pragma once

#include <cstddef>
#include <cstdint>

#include "weights/model_config.h"

namespace sluice {

struct StepCost {
  double flops = 0.0;  // a multiply-add counts as two
  double bytes = 0.0;  // read from memory
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

// weight_bytes: what one step reads of weights, head included (Qwen3_5::weight_bytes()).
//
// flops: 2 per weight and token (head: per row of logits); attention 4 x heads x head_dim per
// (row, key it sees); delta rule 6 x key_dim x value_dim per value head and token, the three
// products of the plain recurrence (chunked forms do more work for the same result). Norms, gates
// and the convolution count nothing.
// bytes: weights once per step (head: when logits are wanted), keys and values of the tokens before
// it, and the recurrent state. Embedding rows, activations and writes count nothing.
StepCost prefill_cost(const ModelConfig& config, std::size_t weight_bytes,
                      const PrefillShape& shape);
StepCost decode_cost(const ModelConfig& config, std::size_t weight_bytes, const DecodeShape& shape);

// Seconds that `cost` takes at least: the longer of computing and reading, since they overlap.
double roofline_seconds(const StepCost& cost, double flop_per_s, double byte_per_s);

// Whether computing, not reading, is the longer of the two.
bool is_compute_bound(const StepCost& cost, double flop_per_s, double byte_per_s);

}  // namespace sluice
