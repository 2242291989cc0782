// config.json from strangers: any text gives a config whose numbers hold together, or an Error.
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "tensor/tensor_view.h"
#include "weights/memory_estimate.h"
#include "weights/model_config.h"
#include "weights/tensor_registry.h"

namespace sluice {
namespace {

// The relations that every reader of a ModelConfig relies on.
void check_config(const ModelConfig& config) {
  SLUICE_CHECK(config.layer_types.size() == static_cast<std::size_t>(config.num_hidden_layers));
  SLUICE_CHECK(config.num_attention_heads % config.num_key_value_heads == 0);
  SLUICE_CHECK(config.linear_num_value_heads % config.linear_num_key_heads == 0);
  SLUICE_CHECK(config.head_dim > 0);
  SLUICE_CHECK(config.head_dim <= kHeadDimMax);
  SLUICE_CHECK(config.rope.rotary_dim > 0);
  SLUICE_CHECK(config.rope.rotary_dim <= config.head_dim);
  SLUICE_CHECK(config.rope.rotary_dim % 2 == 0);
  const auto [time, height, width] = config.rope.mrope_section;
  SLUICE_CHECK(2 * (time + height + width) == config.rope.rotary_dim);
  SLUICE_CHECK(config.rms_norm_eps > 0.0F);
  SLUICE_CHECK(config.mtp_num_hidden_layers >= 0);
  SLUICE_CHECK(config.mtp_num_hidden_layers <= 1);
  if (config.vision) {
    SLUICE_CHECK(config.vision->out_hidden_size == config.hidden_size);
    SLUICE_CHECK(config.vision->hidden_size % (4 * config.vision->num_heads) == 0);
  }
}

// No size derived from an accepted config overflows (UBSan watches the products). Deep models cost
// milliseconds a run and add nothing: a unit test holds the largest one.
void check_sizes(const ModelConfig& config) {
  constexpr std::int64_t kDepthMax = 8;
  if (config.num_hidden_layers > kDepthMax || (config.vision && config.vision->depth > kDepthMax)) {
    return;
  }
  for (const TensorSpec& spec : list_tensors(config, "model.")) {
    SLUICE_CHECK(element_count(spec.shape) > 0);
  }
  SLUICE_CHECK(count_parameters(config).total() > 0);
  for (const WeightPreset preset : kWeightPresets) {
    SLUICE_CHECK(weight_bytes(config, preset).total() > 0);
    const Result<MemoryEstimate> estimate =
        estimate_memory(config, {.preset = preset,
                                 .context_tokens = config.max_position_embeddings,
                                 .sequences = 1,
                                 .with_mtp = true,
                                 .with_vision = true});
    SLUICE_CHECK(estimate.has_value());
    SLUICE_CHECK(estimate->total_bytes() > 0);
  }
}

void run(std::string_view text) {
  const Result<ModelConfig> config = parse_model_config(text, "fuzz");
  if (!config) {
    SLUICE_CHECK(!config.error().message.empty());
    SLUICE_CHECK(config.error().message.size() < 2000);
    return;
  }
  check_config(*config);
  check_sizes(*config);
}

}  // namespace
}  // namespace sluice

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  sluice::run({reinterpret_cast<const char*>(data), size});
  return 0;
}
