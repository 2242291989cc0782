#include "weights/memory_estimate.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

#include "base/checked_math.h"
#include "weights/tensor_registry.h"

namespace sluice {
namespace {

constexpr std::int64_t kBlockTokens = 64;  // one KV block
constexpr std::int64_t kBf16Bytes = 2;
constexpr std::int64_t kF32Bytes = 4;

std::int64_t& group_of(GroupSizes& sizes, TensorGroup group) {
  switch (group) {
    case TensorGroup::mtp:
      return sizes.mtp;
    case TensorGroup::vision:
      return sizes.vision;
    default:
      return sizes.text;
  }
}

std::vector<TensorSpec> specs_of(const ModelConfig& config) {
  return list_tensors(config, "model.");
}

// Bytes of a matrix in the preset's own width.
std::int64_t narrow_bytes(const TensorSpec& spec, WeightPreset preset) {
  const std::int64_t out = spec.shape[0];
  const std::int64_t in = spec.shape[1];
  const kernels::WeightFormat format = weight_format(preset, spec.name);
  if (format == kernels::WeightFormat::fp8) {
    return out * in + kernels::fp8_blocks(out) * kernels::fp8_blocks(in) * kF32Bytes;
  }
  if (format == kernels::WeightFormat::int4) {
    const std::int64_t groups = ceil_div(in, kernels::kInt4GroupK);
    return out * (ceil_div<std::int64_t>(in, 2) + groups + kF32Bytes);
  }
  return out * (in + kF32Bytes);
}

std::int64_t layers_of(const ModelConfig& config, LayerType type) {
  return std::count(config.layer_types.begin(), config.layer_types.end(), type);
}

std::int64_t kv_bytes_of_layer(const ModelConfig& config) {
  return 2 * config.num_key_value_heads * config.head_dim * kBf16Bytes;
}

}  // namespace

GroupSizes count_parameters(const ModelConfig& config) {
  GroupSizes counts;
  for (const TensorSpec& spec : specs_of(config)) {
    group_of(counts, spec.group) += element_count(spec.shape);
  }
  return counts;
}

GroupSizes weight_bytes(const ModelConfig& config, WeightPreset preset) {
  std::vector<TensorSpec> specs = specs_of(config);
  if (config.tie_word_embeddings && has_integer_weights(preset)) {
    specs.push_back({"lm_head.weight", {config.vocab_size, config.hidden_size}});
  }
  GroupSizes bytes;
  for (const TensorSpec& spec : specs) {
    const std::int64_t element_bytes = spec.role == TensorRole::vector ? kF32Bytes : kBf16Bytes;
    const bool narrow = spec.role == TensorRole::matrix && is_narrow(preset, spec.name);
    group_of(bytes, spec.group) +=
        narrow ? narrow_bytes(spec, preset) : element_count(spec.shape) * element_bytes;
  }
  return bytes;
}

std::int64_t kv_bytes_per_token(const ModelConfig& config) {
  return layers_of(config, LayerType::full_attention) * kv_bytes_of_layer(config);
}

std::int64_t mtp_kv_bytes_per_token(const ModelConfig& config) {
  return config.mtp_num_hidden_layers * kv_bytes_of_layer(config);
}

std::int64_t recurrent_state_bytes(const ModelConfig& config) {
  return layers_of(config, LayerType::linear_attention) * config.linear_num_value_heads *
         config.linear_key_head_dim * config.linear_value_head_dim * kF32Bytes;
}

std::int64_t conv_state_bytes(const ModelConfig& config) {
  return layers_of(config, LayerType::linear_attention) * (config.linear_conv_kernel_dim - 1) *
         config.linear_conv_channels() * kBf16Bytes;
}

Result<MemoryEstimate> estimate_memory(const ModelConfig& config, const MemoryQuery& query) {
  if (query.context_tokens < 0 || query.context_tokens > kPositionsMax) {
    return fail(ErrorCode::invalid_argument, fmt::format("context_tokens {}, want 0 to {}",
                                                         query.context_tokens, kPositionsMax));
  }
  const GroupSizes weights = weight_bytes(config, query.preset);
  const std::int64_t per_token =
      kv_bytes_per_token(config) + (query.with_mtp ? mtp_kv_bytes_per_token(config) : 0);
  const std::int64_t kv_of_sequence = round_up(query.context_tokens, kBlockTokens) * per_token;
  const auto kv = checked_mul(query.sequences, kv_of_sequence);
  const auto state =
      checked_mul(query.sequences, recurrent_state_bytes(config) + conv_state_bytes(config));
  const MemoryEstimate estimate{.weight_bytes = weights.text + (query.with_mtp ? weights.mtp : 0) +
                                                (query.with_vision ? weights.vision : 0),
                                .kv_bytes = kv.value_or(0),
                                .state_bytes = state.value_or(0)};
  const auto cache = checked_add(estimate.kv_bytes, estimate.state_bytes);
  if (query.sequences < 0 || !kv || !state || !cache ||
      !checked_add(*cache, estimate.weight_bytes)) {
    return fail(ErrorCode::invalid_argument,
                fmt::format("{} sequences of {} tokens: not a memory size", query.sequences,
                            query.context_tokens));
  }
  return estimate;
}

}  // namespace sluice
