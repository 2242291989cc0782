#include "model/step_cost.h"

#include <algorithm>
#include <cmath>

#include "base/checked_math.h"
#include "kernels/layout.h"
#include "weights/memory_estimate.h"
#include "weights/tensor_registry.h"

namespace sluice {
namespace {

// The numbers both phases need.
struct ModelCost {
  explicit ModelCost(const ModelConfig& config)
      : head_flops(2.0 * static_cast<double>(config.vocab_size * config.hidden_size)),
        head_bytes(static_cast<double>(
            kernels::packed_elements(config.vocab_size, config.hidden_size) * sizeof(bf16_t))),
        kv_bytes(static_cast<double>(kv_bytes_per_token(config))),
        state_bytes(static_cast<double>(recurrent_state_bytes(config) + conv_state_bytes(config))) {
    for (const TensorSpec& spec : list_tensors(config, "model.")) {
      if (spec.group == TensorGroup::text && spec.role == TensorRole::matrix) {
        token_flops += 2.0 * static_cast<double>(element_count(spec.shape));
      }
    }
    if (!config.tie_word_embeddings) {
      token_flops -= head_flops;  // a matrix of its own in the list
    }
    for (const LayerType type : config.layer_types) {
      if (type == LayerType::full_attention) {
        key_flops += 4.0 * static_cast<double>(config.num_attention_heads * config.head_dim);
      } else {
        token_flops +=
            6.0 * static_cast<double>(config.linear_num_value_heads * config.linear_key_head_dim *
                                      config.linear_value_head_dim);
      }
    }
  }

  double token_flops = 0.0;  // of a row but for head and attention
  double key_flops = 0.0;    // per row and key it sees, all layers
  double head_flops;         // per row of logits
  double head_bytes;
  double kv_bytes;     // per token
  double state_bytes;  // per sequence
};

}  // namespace

StepCost prefill_cost(const ModelConfig& config, std::size_t weight_bytes,
                      const PrefillShape& shape) {
  const ModelCost model(config);
  const auto tokens = static_cast<double>(shape.tokens);
  const auto steps = static_cast<double>(ceil_div(shape.tokens, shape.step_tokens));
  const double tokens_before =  // summed over the steps
      static_cast<double>(shape.step_tokens) * steps * (steps - 1.0) / 2.0;
  return {.flops = tokens * model.token_flops + model.key_flops * tokens * (tokens + 1.0) / 2.0 +
                   model.head_flops,
          .bytes = steps * (static_cast<double>(weight_bytes) - model.head_bytes) +
                   model.head_bytes + tokens_before * model.kv_bytes + steps * model.state_bytes};
}

StepCost decode_cost(const ModelConfig& config, std::size_t weight_bytes,
                     const DecodeShape& shape) {
  const ModelCost model(config);
  const auto batch = static_cast<double>(shape.batch);
  const auto context = static_cast<double>(shape.context);
  return {
      .flops = batch * (model.token_flops + model.head_flops + model.key_flops * (context + 1.0)),
      .bytes = static_cast<double>(weight_bytes) +
               batch * (context * model.kv_bytes + model.state_bytes)};
}

double roofline_seconds(const StepCost& cost, double flop_per_s, double byte_per_s) {
  return std::max(cost.flops / flop_per_s, cost.bytes / byte_per_s);
}

bool is_compute_bound(const StepCost& cost, double flop_per_s, double byte_per_s) {
  return cost.flops / flop_per_s > cost.bytes / byte_per_s;
}

}  // namespace sluice
