#include "weights/model_config.h"

#include <gtest/gtest.h>

#include <string>
#include <tuple>

#include "weights/test_files.h"
#include "weights/test_models.h"

namespace sluice {
namespace {

namespace json = boost::json;

// "text_config.rope_parameters.rope_type" set to a JSON text; an empty text removes the field.
std::string patched(const json::object& base, std::string_view path, std::string_view value) {
  json::object document = base;
  json::object* object = &document;
  while (path.find('.') != std::string_view::npos) {
    const std::string_view head = path.substr(0, path.find('.'));
    json::value& child = (*object)[json::string_view(head.data(), head.size())];
    if (!child.is_object()) {
      child.emplace_object();
    }
    object = &child.get_object();
    path.remove_prefix(head.size() + 1);
  }
  const json::string_view key(path.data(), path.size());
  if (value.empty()) {
    object->erase(key);
  } else {
    (*object)[key] = json::parse(json::string_view(value.data(), value.size()));
  }
  return json::serialize(document);
}

json::object base_json() {
  return test::release_json(test::kReleases[4]);
}

Result<ModelConfig> parse_patched(std::string_view path, std::string_view value) {
  return parse_model_config(patched(base_json(), path, value), "config.json");
}

TEST(ModelConfig, ReadsTheReleases) {
  const ModelConfig config = test::release_config(test::kReleases[4]);
  EXPECT_EQ(config.model_type, "qwen3_5");
  EXPECT_EQ(config.hidden_size, 5120);
  EXPECT_EQ(config.linear_conv_channels(), 10240);
  EXPECT_EQ(config.linear_value_size(), 6144);
  ASSERT_EQ(config.layer_types.size(), 64U);
  EXPECT_EQ(
      std::count(config.layer_types.begin(), config.layer_types.end(), LayerType::full_attention),
      16);
  EXPECT_EQ(config.layer_types[2], LayerType::linear_attention);
  EXPECT_EQ(config.layer_types[3], LayerType::full_attention);
  EXPECT_EQ(config.rope.rotary_dim, 64);
  EXPECT_EQ(config.rope.rope_theta, 1e7);
  EXPECT_FALSE(config.tie_word_embeddings);
  EXPECT_EQ(config.mtp_num_hidden_layers, 1);
  ASSERT_TRUE(config.vision.has_value());
  EXPECT_EQ(config.vision->hidden_size, 1152);
  EXPECT_EQ(config.vision->patch_size, 16);
  EXPECT_FALSE(config.fp8_weights);
}

TEST(ModelConfig, ReadsTheGoldenConfigs) {
  const std::filesystem::path goldens = std::filesystem::path(SLUICE_SOURCE_DIR) / "tests/goldens";
  for (const char* name : {"tiny08", "tiny27", "hf_flat", "hf_nested"}) {
    const Result<ModelConfig> config = load_model_config(goldens / name);
    ASSERT_TRUE(config.has_value()) << config.error().message;
    EXPECT_EQ(config->hidden_size, 64) << name;
    EXPECT_EQ(config->rms_norm_eps, 1e-6F) << name;
  }
  EXPECT_EQ(load_model_config(goldens / "hf_flat")->model_type, "qwen3_5_text");
  EXPECT_TRUE(load_model_config(goldens / "hf_nested")->vision.has_value());
}

TEST(ModelConfig, ReadsTheFlatFormAndDefaults) {
  const Result<ModelConfig> config =
      parse_model_config(R"({"model_type": "qwen3_5_text"})", "config.json");
  ASSERT_TRUE(config.has_value()) << config.error().message;
  EXPECT_EQ(config->hidden_size, 4096);
  EXPECT_EQ(config->num_hidden_layers, 32);
  EXPECT_EQ(config->layer_types.size(), 32U);
  EXPECT_EQ(config->max_position_embeddings, 32768);
  EXPECT_EQ(config->mtp_num_hidden_layers, 0);
  EXPECT_FALSE(config->tie_word_embeddings);
  EXPECT_FALSE(config->vision.has_value());
}

TEST(ModelConfig, AcceptsOtherSpellings) {
  const std::tuple<const char*, const char*> cases[]{
      {"text_config.hidden_size", "5120.0"},  // a whole double is an integer
      {"text_config.rms_norm_eps", "1e-05"},
      {"text_config.head_dim", "null"},  // null is absent: the default
      {"text_config.output_gate_type", "\"swish\""},
      {"text_config.mamba_ssm_dtype", "\"bfloat16\""},
      {"text_config.num_experts", "0"},
      {"text_config.rope_theta", "1e7"},  // agrees with rope_parameters
      {"text_config.rope_parameters.type", "\"default\""},
      {"text_config.rope_parameters.partial_rotary_factor", ""},
      {"text_config.rope_parameters.mrope_section", ""},
      {"text_config.rope_parameters", ""},
      {"text_config.rope_scaling", R"({"type": "default", "mrope_section": [11, 11, 10]})"},
      {"text_config.full_attention_interval", ""},
      {"text_config.some_future_field", "{\"a\": [1]}"},
      {"vision_config.model_type", "\"qwen3_5_vision\""},
      {"vision_config.rope_parameters", R"({"rope_type": "axial", "rope_theta": 10000.0})"},
      {"vision_config", "null"},
      {"language_model_only", "true"},
  };
  for (const auto& [path, value] : cases) {
    const Result<ModelConfig> config = parse_patched(path, value);
    ASSERT_TRUE(config.has_value()) << path << " = " << value << ": " << config.error().message;
    EXPECT_EQ(config->hidden_size, 5120) << path;
    EXPECT_EQ(config->rope.rotary_dim, 64) << path;
  }
}

TEST(ModelConfig, TextConfigDecidesAboutTies) {
  json::object document = base_json();
  document["tie_word_embeddings"] = true;
  document["text_config"].as_object()["tie_word_embeddings"] = false;
  EXPECT_FALSE(parse_model_config(json::serialize(document), "c")->tie_word_embeddings);
  document["text_config"].as_object().erase("tie_word_embeddings");
  EXPECT_TRUE(parse_model_config(json::serialize(document), "c")->tie_word_embeddings);
}

TEST(ModelConfig, LayerListWins) {
  json::object document = test::tiny_json();
  document["text_config"].as_object()["layer_types"] = {"full_attention", "linear_attention"};
  const Result<ModelConfig> config = parse_model_config(json::serialize(document), "c");
  ASSERT_TRUE(config.has_value()) << config.error().message;
  EXPECT_EQ(config->layer_types,
            (std::vector{LayerType::full_attention, LayerType::linear_attention}));
}

TEST(ModelConfig, ReadsOfficialFp8) {
  const char* official = R"({"quant_method": "fp8", "fmt": "e4m3", "activation_scheme": "dynamic",
      "weight_block_size": [128, 128], "modules_to_not_convert": ["lm_head"]})";
  EXPECT_TRUE(parse_patched("quantization_config", official)->fp8_weights);
}

struct Rejection {
  const char* path;
  const char* value;
  ErrorCode code;
  const char* message_part;
};

constexpr ErrorCode kCorrupt = ErrorCode::corrupt_data;
constexpr ErrorCode kUnsupported = ErrorCode::unsupported;

class ModelConfigRejects : public testing::TestWithParam<Rejection> {};

TEST_P(ModelConfigRejects, WithFieldValueAndExpectation) {
  const Rejection& rejection = GetParam();
  const std::string_view path(rejection.path);
  const std::string_view leaf = path.substr(path.rfind('.') + 1);
  EXPECT_ERROR(parse_patched(rejection.path, rejection.value), rejection.code,
               {"config.json: ", leaf, rejection.message_part});
}

INSTANTIATE_TEST_SUITE_P(
    Identity, ModelConfigRejects,
    testing::Values(
        Rejection{"model_type", "", kUnsupported, "is missing"},
        Rejection{"model_type", "\"llama\"", kUnsupported, "is \"llama\", want \"qwen3_5\""},
        Rejection{"model_type", "\"qwen3_5_moe\"", kUnsupported, "qwen3_5_moe"},
        Rejection{"model_type", "\"qwen3_5_text\"", kUnsupported, "want \"qwen3_5\""},
        Rejection{"model_type", "7", kCorrupt, "is 7, want a string"},
        Rejection{"text_config", "", kCorrupt, "is missing"},
        Rejection{"text_config", "[]", kCorrupt, "want an object"},
        Rejection{"text_config.model_type", "\"llama\"", kUnsupported, "llama"},
        Rejection{"text_config.num_experts", "256", kUnsupported, "is 256"},
        Rejection{"text_config.moe_intermediate_size", "512", kUnsupported, "is 512"},
        Rejection{"text_config.tie_word_embeddings", "1", kCorrupt, "want true or false"}));

INSTANTIATE_TEST_SUITE_P(
    Sizes, ModelConfigRejects,
    testing::Values(
        Rejection{"text_config.hidden_size", "0", kCorrupt, "is 0, want an integer from 1 to"},
        Rejection{"text_config.hidden_size", "-64", kCorrupt, "is -64"},
        Rejection{"text_config.hidden_size", "64.5", kCorrupt, "want an integer"},
        Rejection{"text_config.hidden_size", "1e300", kCorrupt, "want an integer"},
        Rejection{"text_config.hidden_size", "18446744073709551615", kCorrupt, "want an integer"},
        Rejection{"text_config.hidden_size", "1000000", kUnsupported, "to 65536"},
        Rejection{"text_config.hidden_size", "\"5120\"", kCorrupt, "want an integer"},
        Rejection{"text_config.hidden_size", "true", kCorrupt, "is true"},
        Rejection{"text_config.vocab_size", "99999999", kUnsupported, "to 4194304"},
        Rejection{"text_config.intermediate_size", "0", kCorrupt, "is 0"},
        Rejection{"text_config.num_hidden_layers", "100000", kUnsupported, "to 1024"},
        Rejection{"text_config.head_dim", "512", kUnsupported, "to 256"},
        Rejection{"text_config.head_dim", "24", kUnsupported, "a multiple of"},
        Rejection{"text_config.linear_key_head_dim", "100", kUnsupported, "a multiple of"},
        Rejection{"text_config.linear_value_head_dim", "8", kUnsupported, "a multiple of"},
        Rejection{"text_config.num_key_value_heads", "5", kUnsupported, "attention_heads is 24"},
        Rejection{"text_config.linear_num_value_heads", "47", kUnsupported,
                  "a multiple of linear_num_key_heads (16)"},
        Rejection{"text_config.linear_conv_kernel_dim", "3", kUnsupported, "is 3, want 4"},
        Rejection{"text_config.rms_norm_eps", "0", kCorrupt, "a number above 0"},
        Rejection{"text_config.rms_norm_eps", "1e-300", kUnsupported, "a normal fp32 number"},
        Rejection{"text_config.rms_norm_eps", "\"small\"", kCorrupt, "a number"},
        Rejection{"text_config.max_position_embeddings", "-1", kCorrupt, "is -1"},
        Rejection{"image_token_id", "99999999999", kUnsupported, "want an integer"}));

INSTANTIATE_TEST_SUITE_P(
    Mathematics, ModelConfigRejects,
    testing::Values(
        Rejection{"text_config.hidden_act", "\"gelu\"", kUnsupported, "is \"gelu\", want \"silu\""},
        Rejection{"text_config.attention_bias", "true", kUnsupported, "is true, want false"},
        Rejection{"text_config.attn_output_gate", "false", kUnsupported, "is false, want true"},
        Rejection{"text_config.output_gate_type", "\"sigmoid\"", kUnsupported, "want \"swish\""},
        Rejection{"text_config.mamba_ssm_dtype", "\"float16\"", kUnsupported, "float16"},
        Rejection{"text_config.use_sliding_window", "true", kUnsupported, "want false"},
        Rejection{"text_config.mtp_use_dedicated_embeddings", "true", kUnsupported, "want false"},
        Rejection{"text_config.mtp_num_hidden_layers", "2", kUnsupported, "from 0 to 1"},
        Rejection{"text_config.layer_types", "[\"full_attention\"]", kCorrupt, "(64) strings"},
        Rejection{"text_config.layer_types", "\"full_attention\"", kCorrupt, "(64) strings"},
        Rejection{"text_config.full_attention_interval", "0", kCorrupt, "is 0"}));

INSTANTIATE_TEST_SUITE_P(
    Rope, ModelConfigRejects,
    testing::Values(
        Rejection{"text_config.rope_parameters.rope_type", "\"yarn\"", kUnsupported,
                  "is \"yarn\", want \"default\""},
        Rejection{"text_config.rope_parameters.type", "\"linear\"", kUnsupported, "linear"},
        Rejection{"text_config.rope_scaling.type", "\"yarn\"", kUnsupported, "yarn"},
        Rejection{"text_config.rope_parameters.factor", "4.0", kUnsupported, "want no such key"},
        Rejection{"text_config.rope_parameters.mrope_interleaved", "false", kUnsupported,
                  "want true"},
        Rejection{"text_config.rope_theta", "10000", kCorrupt, "is 10000, want the same"},
        Rejection{"text_config.partial_rotary_factor", "0.5", kCorrupt, "want the same"},
        Rejection{"text_config.rope_scaling.mrope_section", "[12, 10, 10]", kCorrupt,
                  "want the same"},
        Rejection{"text_config.rope_parameters.mrope_section", "[11, 11, 11]", kUnsupported,
                  "the sum is 33, want 32"},
        Rejection{"text_config.rope_parameters.mrope_section", "[11, 12, 9]", kUnsupported,
                  "height ends at frequency 34"},
        Rejection{"text_config.rope_parameters.mrope_section", "[10, 11, 11]", kUnsupported,
                  "width at 32"},
        Rejection{"text_config.rope_parameters.mrope_section", "[8, 12, 12]", kUnsupported,
                  "cannot be interleaved"},
        Rejection{"text_config.rope_parameters.mrope_section", "[16, 16]", kUnsupported,
                  "want 3 entries"},
        Rejection{"text_config.rope_parameters.mrope_section", "[33, -1, 0]", kCorrupt,
                  "want an integer"},
        Rejection{"text_config.rope_parameters.rope_theta", "1", kCorrupt, "a number above 1"},
        Rejection{"text_config.rope_parameters", "[]", kCorrupt, "want an object"}));

INSTANTIATE_TEST_SUITE_P(
    Vision, ModelConfigRejects,
    testing::Values(
        Rejection{"vision_config.model_type", "\"siglip\"", kUnsupported, "siglip"},
        Rejection{"vision_config.hidden_act", "\"relu\"", kUnsupported, "relu"},
        Rejection{"vision_config.deepstack_visual_indexes", "[8, 16]", kUnsupported, "empty list"},
        Rejection{"vision_config.in_channels", "4", kUnsupported, "is 4, want 3"},
        Rejection{"vision_config.out_hidden_size", "64", kCorrupt, "text hidden_size, 5120"},
        Rejection{"vision_config.num_heads", "7", kUnsupported, ""},
        Rejection{"vision_config.num_position_embeddings", "2000", kUnsupported, "square"},
        Rejection{"vision_config.depth", "0", kCorrupt, "is 0"},
        Rejection{"vision_config.rope_parameters.rope_type", "\"yarn\"", kUnsupported, "yarn"}));

INSTANTIATE_TEST_SUITE_P(
    Quantization, ModelConfigRejects,
    testing::Values(Rejection{"quantization_config.quant_method", "\"gptq\"", kUnsupported, "gptq"},
                    Rejection{"quantization_config", "7", kCorrupt, "want an object"}));

TEST(ModelConfig, RejectsOtherFp8Layouts) {
  const std::tuple<const char*, const char*, const char*> cases[]{
      {"fmt", "\"e5m2\"", "e5m2"},
      {"activation_scheme", "\"static\"", "static"},
      {"weight_block_size", "[64, 128]", "[64,128], want [128, 128]"},
      {"weight_block_size", "null", "is missing, want [128, 128]"}};
  for (const auto& [key, value, part] : cases) {
    json::object document = base_json();
    document["quantization_config"] = {{"quant_method", "fp8"},
                                       {"fmt", "e4m3"},
                                       {"activation_scheme", "dynamic"},
                                       {"weight_block_size", {128, 128}}};
    const std::string text = patched(document, std::string("quantization_config.") + key, value);
    EXPECT_ERROR(parse_model_config(text, "config.json"), kUnsupported, {key, part});
  }
}

TEST(ModelConfig, RejectsOddRotaryDim) {
  json::object document = base_json();
  document["text_config"].as_object().erase("partial_rotary_factor");
  const std::string odd =
      patched(document, "text_config.rope_parameters.partial_rotary_factor", "0.26171875");
  EXPECT_ERROR(parse_model_config(odd, "c"), kUnsupported, {"partial_rotary_factor", "67"});
  const std::string broken =
      patched(document, "text_config.rope_parameters.partial_rotary_factor", "0.3");
  EXPECT_ERROR(parse_model_config(broken, "c"), kUnsupported, {"partial_rotary_factor", "76.8"});
}

TEST(ModelConfig, RejectsUnknownLayerTypes) {
  json::object document = test::tiny_json();
  document["text_config"].as_object()["layer_types"] = {"linear_attention", "sliding_attention"};
  EXPECT_ERROR(parse_model_config(json::serialize(document), "c"), kUnsupported,
               {"layer_types", "entry 1", "sliding_attention"});
  document["text_config"].as_object()["layer_types"] = {"linear_attention", 1};
  EXPECT_ERROR(parse_model_config(json::serialize(document), "c"), kCorrupt, {"layer_types"});
}

TEST(ModelConfig, RejectsBrokenJson) {
  EXPECT_ERROR(parse_model_config("", "c"), kCorrupt, {"c: not valid JSON"});
  EXPECT_ERROR(parse_model_config("{\"a\": 1", "c"), kCorrupt, {"not valid JSON"});
  EXPECT_ERROR(parse_model_config("{} {}", "c"), kCorrupt, {"not valid JSON", "near byte"});
  EXPECT_ERROR(parse_model_config("[]", "c"), kCorrupt, {"want a JSON object"});
  EXPECT_ERROR(parse_model_config("{\"a\": \"\xff\"}", "c"), kCorrupt, {"not valid JSON"});
  EXPECT_ERROR(parse_model_config(R"({"a": {"b": 1, "b": 1}})", "c"), kCorrupt,
               {"key \"b\" appears twice"});
  EXPECT_ERROR(parse_model_config(R"({"a": 1, "\u0061": 1})", "c"), kCorrupt, {"appears twice"});
  const std::string deep = "{\"a\":" + std::string(100000, '[');
  EXPECT_ERROR(parse_model_config(deep, "c"), kCorrupt, {"nesting limit 16"});
}

TEST(ModelConfig, MessagesCutHostileText) {
  json::object document = base_json();
  document["model_type"] = std::string(100000, 'x') + "\x1b[2J";
  const Result<ModelConfig> config = parse_model_config(json::serialize(document), "c");
  ASSERT_FALSE(config.has_value());
  EXPECT_LT(config.error().message.size(), 400U);
}

TEST(ModelConfig, LoadsFromADirectory) {
  const test::TemporaryDirectory directory;
  EXPECT_ERROR(load_model_config(directory.path()), ErrorCode::not_found, {"config.json"});
  test::write_file(directory / "config.json", json::serialize(base_json()));
  EXPECT_TRUE(load_model_config(directory.path()).has_value());
  test::write_file(directory / "config.json", std::string(kConfigBytesMax + 1, ' '));
  EXPECT_ERROR(load_model_config(directory.path()), ErrorCode::resource_exhausted, {"config.json"});
}

}  // namespace
}  // namespace sluice
