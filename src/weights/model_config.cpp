#include "weights/model_config.h"

#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <span>

#include "platform/mapped_file.h"
#include "weights/config_object.h"
#include "weights/rope_config.h"
#include "weights/strict_json.h"

namespace sluice {
namespace {

namespace json = boost::json;
using std::string_view_literals::operator""sv;

constexpr std::int64_t kFp8BlockRows = 128;
constexpr ConfigIntegerRange kTokenIdRange{.min = 0,
                                           .max = std::numeric_limits<std::int32_t>::max()};

template <typename Config>
struct SizeField {
  std::string_view name;
  std::int64_t Config::* member;
  std::int64_t max;
};

constexpr std::array kTextSizes{
    SizeField{"vocab_size", &ModelConfig::vocab_size, kVocabSizeMax},
    SizeField{"hidden_size", &ModelConfig::hidden_size, kHiddenSizeMax},
    SizeField{"intermediate_size", &ModelConfig::intermediate_size, kIntermediateSizeMax},
    SizeField{"num_hidden_layers", &ModelConfig::num_hidden_layers, kLayersMax},
    SizeField{"num_attention_heads", &ModelConfig::num_attention_heads, kHeadsMax},
    SizeField{"num_key_value_heads", &ModelConfig::num_key_value_heads, kHeadsMax},
    SizeField{"head_dim", &ModelConfig::head_dim, kHeadDimMax},
    SizeField{"linear_num_key_heads", &ModelConfig::linear_num_key_heads, kHeadsMax},
    SizeField{"linear_num_value_heads", &ModelConfig::linear_num_value_heads, kHeadsMax},
    SizeField{"linear_key_head_dim", &ModelConfig::linear_key_head_dim, kHeadDimMax},
    SizeField{"linear_value_head_dim", &ModelConfig::linear_value_head_dim, kHeadDimMax},
    SizeField{"max_position_embeddings", &ModelConfig::max_position_embeddings, kPositionsMax},
};

constexpr std::array kVisionSizes{
    SizeField{"depth", &VisionConfig::depth, kLayersMax},
    SizeField{"hidden_size", &VisionConfig::hidden_size, kHiddenSizeMax},
    SizeField{"intermediate_size", &VisionConfig::intermediate_size, kIntermediateSizeMax},
    SizeField{"num_heads", &VisionConfig::num_heads, kHeadsMax},
    SizeField{"patch_size", &VisionConfig::patch_size, std::int64_t{64}},
    SizeField{"temporal_patch_size", &VisionConfig::temporal_patch_size, std::int64_t{8}},
    SizeField{"spatial_merge_size", &VisionConfig::spatial_merge_size, std::int64_t{8}},
    SizeField{"out_hidden_size", &VisionConfig::out_hidden_size, kHiddenSizeMax},
    SizeField{"num_position_embeddings", &VisionConfig::num_position_embeddings,
              std::int64_t{1} << 20},
};

template <typename Config, std::size_t N>
Result<void> read_sizes(const ConfigObject& object, const std::array<SizeField<Config>, N>& fields,
                        Config& config) {
  for (const SizeField<Config>& field : fields) {
    config.*field.member = SLUICE_TRY(object.integer(field.name, {.min = 1, .max = field.max}))
                               .value_or(config.*field.member);
  }
  return {};
}

// A size that is too coarse or too fine for another size, or not a multiple the kernels can hold.
Result<void> require_multiple(const ConfigObject& object, std::string_view name, std::int64_t value,
                              std::int64_t divisor, std::string_view divisor_name) {
  if (value % divisor != 0) {
    return object.reject(ErrorCode::unsupported, name,
                         fmt::format("a multiple of {} ({})", divisor_name, divisor));
  }
  return {};
}

Result<void> read_text_sizes(const ConfigObject& text, ModelConfig& config) {
  SLUICE_TRY(read_sizes(text, kTextSizes, config));
  constexpr std::string_view kMultiple = "the kernels' head size step";
  SLUICE_TRY(require_multiple(text, "head_dim", config.head_dim, kHeadDimMultiple, kMultiple));
  SLUICE_TRY(require_multiple(text, "linear_key_head_dim", config.linear_key_head_dim,
                              kHeadDimMultiple, kMultiple));
  SLUICE_TRY(require_multiple(text, "linear_value_head_dim", config.linear_value_head_dim,
                              kHeadDimMultiple, kMultiple));
  SLUICE_TRY(require_multiple(text, "num_attention_heads", config.num_attention_heads,
                              config.num_key_value_heads, "num_key_value_heads"));
  SLUICE_TRY(require_multiple(text, "linear_num_value_heads", config.linear_num_value_heads,
                              config.linear_num_key_heads, "linear_num_key_heads"));
  const std::int64_t kernel = SLUICE_TRY(text.integer("linear_conv_kernel_dim", {1, 1024}))
                                  .value_or(config.linear_conv_kernel_dim);
  if (kernel != config.linear_conv_kernel_dim) {
    return text.reject(ErrorCode::unsupported, "linear_conv_kernel_dim", "4");
  }
  const double eps = SLUICE_TRY(text.number("rms_norm_eps", {.above = 0.0, .max = 0.1}))
                         .value_or(static_cast<double>(config.rms_norm_eps));
  config.rms_norm_eps = static_cast<float>(eps);
  if (config.rms_norm_eps < std::numeric_limits<float>::min()) {
    return text.reject(ErrorCode::unsupported, "rms_norm_eps", "a normal fp32 number");
  }
  return {};
}

// Fields with one value in the whole family: another value is another model.
Result<void> check_fixed_fields(const ConfigObject& text) {
  constexpr std::array kSilu{"silu"sv};
  constexpr std::array kSwish{"swish"sv};
  constexpr std::array kStateDTypes{"float32"sv, "bfloat16"sv};  // we keep fp32 in any case
  SLUICE_TRY(text.require_text("hidden_act", kSilu));
  SLUICE_TRY(text.require_text("output_gate_type", kSwish));  // ignored by the reference
  SLUICE_TRY(text.require_text("mamba_ssm_dtype", kStateDTypes));
  SLUICE_TRY(text.require_flag("attention_bias", false));
  SLUICE_TRY(text.require_flag("attn_output_gate", true));
  SLUICE_TRY(text.require_flag("use_sliding_window", false));
  SLUICE_TRY(text.require_flag("mtp_use_dedicated_embeddings", false));
  for (const std::string_view key :
       {"num_experts"sv, "num_experts_per_tok"sv, "num_local_experts"sv, "n_routed_experts"sv,
        "moe_intermediate_size"sv, "shared_expert_intermediate_size"sv}) {
    if (SLUICE_TRY(text.integer(key, {0, std::numeric_limits<std::int64_t>::max()})).value_or(0) !=
        0) {
      return text.reject(ErrorCode::unsupported, key,
                         "no such key (mixture-of-experts models are another family)");
    }
  }
  return {};
}

Result<void> read_layer_types(const ConfigObject& text, ModelConfig& config) {
  const std::int64_t interval =
      SLUICE_TRY(text.integer("full_attention_interval", {1, kLayersMax})).value_or(4);
  const auto layers = static_cast<std::size_t>(config.num_hidden_layers);
  const json::value* value = text.find("layer_types");
  if (value == nullptr) {
    for (std::int64_t i = 0; i < config.num_hidden_layers; ++i) {
      config.layer_types.push_back((i + 1) % interval == 0 ? LayerType::full_attention
                                                           : LayerType::linear_attention);
    }
    return {};
  }
  const json::array* list = value->if_array();
  if (list == nullptr || list->size() != layers) {
    return text.reject(ErrorCode::corrupt_data, "layer_types",
                       fmt::format("a list of num_hidden_layers ({}) strings", layers));
  }
  for (std::size_t i = 0; i < layers; ++i) {
    const json::string* name = (*list)[i].if_string();
    if (name != nullptr && *name == "linear_attention") {
      config.layer_types.push_back(LayerType::linear_attention);
    } else if (name != nullptr && *name == "full_attention") {
      config.layer_types.push_back(LayerType::full_attention);
    } else {
      return text.reject(
          name == nullptr ? ErrorCode::corrupt_data : ErrorCode::unsupported, "layer_types",
          fmt::format("only \"linear_attention\" and \"full_attention\" (entry {})", i));
    }
  }
  return {};
}

Result<void> read_token_ids(const ConfigObject& root, ModelConfig& config) {
  constexpr std::array kIds{
      std::pair{"image_token_id"sv, &ModelConfig::image_token_id},
      std::pair{"video_token_id"sv, &ModelConfig::video_token_id},
      std::pair{"vision_start_token_id"sv, &ModelConfig::vision_start_token_id},
      std::pair{"vision_end_token_id"sv, &ModelConfig::vision_end_token_id},
  };
  for (const auto& [name, member] : kIds) {
    config.*member = static_cast<std::int32_t>(
        SLUICE_TRY(root.integer(name, kTokenIdRange)).value_or(config.*member));
  }
  return {};
}

// Only the official FP8 layout: e4m3 with one scale per 128 x 128 block. Which modules are FP8 is
// decided by the tensors (published exclusion lists name modules that do not exist).
Result<void> read_quantization(const ConfigObject& owner, ModelConfig& config) {
  const std::optional<ConfigObject> quantization = SLUICE_TRY(owner.child("quantization_config"));
  if (!quantization) {
    return {};
  }
  constexpr std::array kMethod{"fp8"sv};
  constexpr std::array kFormat{"e4m3"sv};
  constexpr std::array kActivation{"dynamic"sv};
  if (!quantization->has("quant_method")) {
    return quantization->reject(ErrorCode::unsupported, "quant_method", "\"fp8\"");
  }
  SLUICE_TRY(quantization->require_text("quant_method", kMethod));
  SLUICE_TRY(quantization->require_text("fmt", kFormat));
  SLUICE_TRY(quantization->require_text("activation_scheme", kActivation));
  const auto block = SLUICE_TRY(quantization->integers(
      "weight_block_size", {1, std::numeric_limits<std::int32_t>::max()}, false));
  if (block != std::vector<std::int64_t>{kFp8BlockRows, kFp8BlockRows}) {
    return quantization->reject(ErrorCode::unsupported, "weight_block_size", "[128, 128]");
  }
  config.fp8_weights = true;
  return {};
}

Result<void> check_vision(const ConfigObject& object, const VisionConfig& vision,
                          std::int64_t text_hidden_size) {
  constexpr std::array kModelTypes{"qwen3_5"sv, "qwen3_5_vision"sv};
  constexpr std::array kActivations{"gelu_pytorch_tanh"sv};
  SLUICE_TRY(object.require_text("model_type", kModelTypes));
  SLUICE_TRY(object.require_text("hidden_act", kActivations));
  if (const json::value* list = object.find("deepstack_visual_indexes")) {
    if (!list->is_array() || !list->get_array().empty()) {
      return object.reject(ErrorCode::unsupported, "deepstack_visual_indexes", "an empty list");
    }
  }
  if (vision.in_channels != 3) {
    return object.reject(ErrorCode::unsupported, "in_channels", "3");
  }
  if (vision.out_hidden_size != text_hidden_size) {
    return object.reject(ErrorCode::corrupt_data, "out_hidden_size",
                         fmt::format("the text hidden_size, {}", text_hidden_size));
  }
  SLUICE_TRY(
      require_multiple(object, "hidden_size", vision.hidden_size, vision.num_heads, "num_heads"));
  // Rows and columns each rotate head size / 4 pairs.
  SLUICE_TRY(require_multiple(object, "hidden_size", vision.hidden_size / vision.num_heads, 4,
                              "4 per head, for two rotary axes"));
  const auto side = std::llround(std::sqrt(static_cast<double>(vision.num_position_embeddings)));
  if (side * side != vision.num_position_embeddings) {
    return object.reject(ErrorCode::unsupported, "num_position_embeddings",
                         "a square number (a table of side x side)");
  }
  return {};
}

Result<void> read_vision(const ConfigObject& root, ModelConfig& config) {
  const std::optional<ConfigObject> object = SLUICE_TRY(root.child("vision_config"));
  if (!object) {
    return {};
  }
  VisionConfig vision{.depth = 27,
                      .hidden_size = 1152,
                      .intermediate_size = 4304,
                      .num_heads = 16,
                      .out_hidden_size = config.hidden_size};
  SLUICE_TRY(read_sizes(*object, kVisionSizes, vision));
  vision.in_channels =
      SLUICE_TRY(object->integer("in_channels", {1, 1024})).value_or(vision.in_channels);
  SLUICE_TRY(check_vision(*object, vision, config.hidden_size));
  if (const std::optional<ConfigObject> rope = SLUICE_TRY(object->child("rope_parameters"))) {
    constexpr std::array kTypes{"axial"sv, "default"sv};
    SLUICE_TRY(rope->require_text("rope_type", kTypes));
    vision.rope_theta = SLUICE_TRY(rope->number("rope_theta", {.above = 1.0, .max = 1e12}))
                            .value_or(vision.rope_theta);
  }
  config.vision = vision;
  return {};
}

// The object with the text fields: text_config of the nested form, the document of the flat one.
Result<ConfigObject> find_text_config(const ConfigObject& root, ModelConfig& config) {
  constexpr std::array kNested{"qwen3_5"sv};
  constexpr std::array kText{"qwen3_5_text"sv};
  constexpr std::array kEither{"qwen3_5"sv, "qwen3_5_text"sv};
  if (!root.has("model_type")) {
    return root.reject(ErrorCode::unsupported, "model_type", "\"qwen3_5\" or \"qwen3_5_text\"");
  }
  SLUICE_TRY(root.require_text("model_type", kEither));
  config.model_type = SLUICE_TRY(root.text("model_type")).value_or("");
  std::optional<ConfigObject> text = SLUICE_TRY(root.child("text_config"));
  if (text) {
    SLUICE_TRY(root.require_text("model_type", kNested));
    SLUICE_TRY(text->require_text("model_type", kText));
    return *text;
  }
  if (config.model_type == kNested[0]) {
    return root.reject(ErrorCode::corrupt_data, "text_config", "an object (model_type qwen3_5)");
  }
  return root;
}

}  // namespace

Result<ModelConfig> parse_model_config(std::string_view json_text, std::string_view where) {
  const json::value document = SLUICE_TRY(parse_strict_json(json_text, where));
  if (!document.is_object()) {
    return fail(ErrorCode::corrupt_data, fmt::format("{}: want a JSON object", where),
                std::string(where));
  }
  const ConfigObject root(document.get_object(), std::string(where), "");
  ModelConfig config;
  const ConfigObject text = SLUICE_TRY(find_text_config(root, config));
  SLUICE_TRY(check_fixed_fields(text));
  SLUICE_TRY(read_text_sizes(text, config));
  SLUICE_TRY(read_layer_types(text, config));
  config.rope = SLUICE_TRY(read_rope_parameters(text, config.head_dim));
  config.mtp_num_hidden_layers = SLUICE_TRY(text.integer("mtp_num_hidden_layers", {0, 1}))
                                     .value_or(config.mtp_num_hidden_layers);
  const ConfigObject& tie_owner = text.has("tie_word_embeddings") ? text : root;
  config.tie_word_embeddings =
      SLUICE_TRY(tie_owner.boolean("tie_word_embeddings")).value_or(config.tie_word_embeddings);
  SLUICE_TRY(read_token_ids(root, config));
  SLUICE_TRY(read_quantization(root.has("quantization_config") ? root : text, config));
  SLUICE_TRY(read_vision(root, config));
  return config;
}

Result<ModelConfig> load_model_config(const std::filesystem::path& model_directory) {
  const std::filesystem::path path = model_directory / "config.json";
  const std::string text = SLUICE_TRY(read_text_file(path, kConfigBytesMax));
  return parse_model_config(text, path.string());
}

}  // namespace sluice
