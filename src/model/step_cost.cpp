#include "model/step_cost.h"

#include <algorithm>
#include <string_view>

#include "base/checked_math.h"
#include "kernels/weight_format.h"
#include "weights/memory_estimate.h"
#include "weights/tensor_registry.h"

namespace sluice {
namespace {

// Operations by the unit that does them.
struct Operations {
  double flops = 0.0;
  double int8_ops = 0.0;

  // A product of [out, in] weights with one row.
  void add(kernels::WeightFormat format, const Shape& shape) {
    (kernels::is_integer(format) ? int8_ops : flops) +=
        2.0 * static_cast<double>(element_count(shape));
  }
  Operations times(double count) const { return {count * flops, count * int8_ops}; }
};

constexpr std::string_view kHeadName = "lm_head.weight";

// The numbers both phases need.
struct ModelCost {
  ModelCost(const ModelConfig& config, WeightPreset preset)
      : head_bytes(static_cast<double>(kernels::packed_bytes(
            weight_format(preset, kHeadName), config.vocab_size, config.hidden_size))),
        kv_bytes(static_cast<double>(kv_bytes_per_token(config))),
        state_bytes(static_cast<double>(recurrent_state_bytes(config) + conv_state_bytes(config))) {
    head.add(weight_format(preset, kHeadName), {config.vocab_size, config.hidden_size});
    for (const TensorSpec& spec : list_tensors(config, "model.")) {
      if (spec.group == TensorGroup::text && spec.role == TensorRole::matrix &&
          spec.name != kHeadName) {
        token.add(weight_format(preset, spec.name), spec.shape);
      }
    }
    for (const LayerType type : config.layer_types) {
      if (type == LayerType::full_attention) {
        key_flops += 4.0 * static_cast<double>(config.num_attention_heads * config.head_dim);
      } else {
        token.flops +=
            6.0 * static_cast<double>(config.linear_num_value_heads * config.linear_key_head_dim *
                                      config.linear_value_head_dim);
      }
    }
  }

  Operations token;        // of a row but for head and attention
  Operations head;         // per row of logits
  double key_flops = 0.0;  // per row and key it sees, all layers
  double head_bytes;
  double kv_bytes;     // per token
  double state_bytes;  // per sequence
};

double compute_seconds(const StepCost& cost, const MachineRates& rates) {
  return cost.flops / rates.flop_per_s + cost.int8_ops / rates.int8_op_per_s;
}

}  // namespace

StepCost prefill_cost(const ModelConfig& config, const WeightReads& weights,
                      const PrefillShape& shape) {
  const ModelCost model(config, weights.preset);
  const auto tokens = static_cast<double>(shape.tokens);
  const auto steps = static_cast<double>(ceil_div(shape.tokens, shape.step_tokens));
  const double tokens_before =  // summed over the steps
      static_cast<double>(shape.step_tokens) * steps * (steps - 1.0) / 2.0;
  const Operations rows = model.token.times(tokens);
  return {.flops = rows.flops + model.key_flops * tokens * (tokens + 1.0) / 2.0 + model.head.flops,
          .int8_ops = rows.int8_ops + model.head.int8_ops,
          .bytes = steps * (static_cast<double>(weights.bytes) - model.head_bytes) +
                   model.head_bytes + tokens_before * model.kv_bytes + steps * model.state_bytes};
}

StepCost decode_cost(const ModelConfig& config, const WeightReads& weights,
                     const DecodeShape& shape) {
  const ModelCost model(config, weights.preset);
  const auto batch = static_cast<double>(shape.batch);
  const auto context = static_cast<double>(shape.context);
  return {
      .flops = batch * (model.token.flops + model.head.flops + model.key_flops * (context + 1.0)),
      .int8_ops = batch * (model.token.int8_ops + model.head.int8_ops),
      .bytes = static_cast<double>(weights.bytes) +
               batch * (context * model.kv_bytes + model.state_bytes)};
}

double roofline_seconds(const StepCost& cost, const MachineRates& rates) {
  return std::max(compute_seconds(cost, rates), cost.bytes / rates.byte_per_s);
}

bool is_compute_bound(const StepCost& cost, const MachineRates& rates) {
  return compute_seconds(cost, rates) > cost.bytes / rates.byte_per_s;
}

}  // namespace sluice
