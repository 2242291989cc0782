#include "weights/memory_estimate.h"

#include <gtest/gtest.h>

#include "weights/test_files.h"
#include "weights/test_models.h"

namespace sluice {
namespace {

constexpr std::int64_t kKiB = 1024;
constexpr std::int64_t kMiB = 1024 * kKiB;

ModelConfig config_27b() {
  return test::release_config(test::kReleases[4]);
}

double in_millions(std::int64_t count) {
  return static_cast<double>(count) / 1e6;
}

double in_gb(std::int64_t bytes) {
  return static_cast<double>(bytes) / 1e9;
}

TEST(MemoryEstimate, CountsTheParametersOfTheReleases) {
  for (const test::Release& release : test::kReleases) {
    const GroupSizes counts = count_parameters(test::release_config(release));
    EXPECT_NEAR(in_millions(counts.text), release.text_millions, 0.05) << release.name;
    EXPECT_NEAR(in_millions(counts.mtp), release.mtp_millions, 0.05) << release.name;
    EXPECT_NEAR(in_millions(counts.vision), release.vision_millions, 0.05) << release.name;
  }
}

TEST(MemoryEstimate, CachesOfTheReleases) {
  const ModelConfig config = config_27b();
  EXPECT_EQ(kv_bytes_per_token(config), 64 * kKiB);
  EXPECT_EQ(mtp_kv_bytes_per_token(config), 4 * kKiB);
  EXPECT_EQ(recurrent_state_bytes(config), 144 * kMiB);
  EXPECT_EQ(conv_state_bytes(config), 48 * 30'720 * 2);
  EXPECT_EQ(kv_bytes_per_token(test::release_config(test::kReleases[0])), 6 * 2 * 2 * 256 * 2);
}

TEST(MemoryEstimate, WeightsPerPreset) {
  const ModelConfig config = config_27b();
  const auto text_gb = [&](WeightPreset preset) {
    return in_gb(weight_bytes(config, preset).text);
  };
  EXPECT_NEAR(text_gb(WeightPreset::bf16), 53.8, 0.1);
  EXPECT_NEAR(text_gb(WeightPreset::mlp_fp8), 36.7, 0.1);
  EXPECT_NEAR(text_gb(WeightPreset::fp8), 29.5, 0.1);
  EXPECT_NEAR(text_gb(WeightPreset::int8), 28.2, 0.1);
  EXPECT_NEAR(text_gb(WeightPreset::int4), 16.8, 0.1);
  for (const WeightPreset preset : kWeightPresets) {
    EXPECT_EQ(weight_bytes(config, preset).vision, weight_bytes(config, WeightPreset::bf16).vision);
  }
}

TEST(MemoryEstimate, CountsASmallModelByHand) {
  boost::json::object json = test::tiny_json();
  json["text_config"].as_object()["layer_types"] = boost::json::array{"full_attention"};
  json["text_config"].as_object()["num_hidden_layers"] = 1;
  json["text_config"].as_object()["mtp_num_hidden_layers"] = 0;
  json.erase("vision_config");
  const ModelConfig config = test::config_of(json);
  // Matrices [out, in]: q 128x32, k and v 32x32, o 32x64, gate and up 48x32, down 32x48.
  const std::int64_t attention = 128 * 32 + 2 * 32 * 32 + 32 * 64;
  const std::int64_t mlp = 3 * 48 * 32;
  const std::int64_t table = 40 * 32;  // embedding; the head is another
  const std::int64_t vectors = 3 * 32 + 2 * 32;
  EXPECT_EQ(count_parameters(config).total(), attention + mlp + 2 * table + vectors);
  EXPECT_EQ(weight_bytes(config, WeightPreset::bf16).total(),
            2 * (attention + mlp + 2 * table) + 4 * vectors);
  EXPECT_EQ(weight_bytes(config, WeightPreset::mlp_fp8).total(),
            2 * (attention + 2 * table) + mlp + 3 * 4 + 4 * vectors);
  EXPECT_EQ(weight_bytes(config, WeightPreset::fp8).total(),
            attention + mlp + 7 * 4 + 2 * 2 * table + 4 * vectors);
  const std::int64_t rows = 128 + 32 + 32 + 32 + 48 + 48 + 32 + 40;  // of all linear weights
  EXPECT_EQ(weight_bytes(config, WeightPreset::int8).total(),
            attention + mlp + table + 4 * rows + 2 * table + 4 * vectors);
  const std::int64_t down_groups = 16;  // 48 inputs take two groups, not one and a half
  EXPECT_EQ(weight_bytes(config, WeightPreset::int4).total(),
            (attention + mlp) / 2 + (attention + mlp) / 32 + down_groups + table + 4 * rows +
                2 * table + 4 * vectors);
}

TEST(MemoryEstimate, TiedHeadIsACopyOnlyWhenQuantised) {
  const ModelConfig config = test::release_config(test::kReleases[0]);
  const std::int64_t table = 248'320 * 1024;
  ModelConfig untied = config;
  untied.tie_word_embeddings = false;
  EXPECT_EQ(
      weight_bytes(untied, WeightPreset::bf16).text - weight_bytes(config, WeightPreset::bf16).text,
      2 * table);
  EXPECT_EQ(weight_bytes(untied, WeightPreset::int8).text,
            weight_bytes(config, WeightPreset::int8).text);
}

TEST(MemoryEstimate, Totals) {
  const ModelConfig config = config_27b();
  MemoryQuery query{.preset = WeightPreset::bf16, .context_tokens = 1000, .sequences = 2};
  const MemoryEstimate plain = *estimate_memory(config, query);
  EXPECT_EQ(plain.kv_bytes, 2 * 1024 * 64 * kKiB) << "whole blocks of 64 tokens";
  EXPECT_EQ(plain.state_bytes, 2 * (144 * kMiB + 48 * 30'720 * 2));
  EXPECT_EQ(plain.weight_bytes, weight_bytes(config, WeightPreset::bf16).text);
  EXPECT_EQ(plain.total_bytes(), plain.weight_bytes + plain.kv_bytes + plain.state_bytes);
  query.with_mtp = query.with_vision = true;
  const MemoryEstimate all = *estimate_memory(config, query);
  EXPECT_EQ(all.weight_bytes, weight_bytes(config, WeightPreset::bf16).total());
  EXPECT_EQ(all.kv_bytes, 2 * 1024 * 68 * kKiB);
}

// The limits of model_config.h are low enough; UBSan builds watch the products.
TEST(MemoryEstimate, LargestConfigDoesNotOverflow) {
  boost::json::object json = test::release_json(test::kReleases[4]);
  boost::json::object& text = json["text_config"].as_object();
  boost::json::object& vision = json["vision_config"].as_object();
  text["vocab_size"] = kVocabSizeMax;
  text["num_hidden_layers"] = vision["depth"] = kLayersMax;
  text["max_position_embeddings"] = kPositionsMax;
  text["linear_key_head_dim"] = text["linear_value_head_dim"] = kHeadDimMax;
  text["hidden_size"] = vision["hidden_size"] = vision["out_hidden_size"] = kHiddenSizeMax;
  text["intermediate_size"] = vision["intermediate_size"] = kIntermediateSizeMax;
  text["num_attention_heads"] = text["num_key_value_heads"] = vision["num_heads"] = kHeadsMax;
  text["linear_num_key_heads"] = text["linear_num_value_heads"] = kHeadsMax;
  vision["patch_size"] = 64;
  vision["spatial_merge_size"] = vision["temporal_patch_size"] = 8;
  vision["num_position_embeddings"] = 1 << 20;
  const ModelConfig config = test::config_of(json);
  EXPECT_GT(count_parameters(config).total(), std::int64_t{1} << 45);
  EXPECT_LT(weight_bytes(config, WeightPreset::bf16).total(), std::int64_t{1} << 50);
  const MemoryQuery query{.context_tokens = kPositionsMax, .with_mtp = true, .with_vision = true};
  EXPECT_GT(estimate_memory(config, query)->kv_bytes, std::int64_t{1} << 52);
}

TEST(MemoryEstimate, RejectsWhatIsNoSize) {
  const ModelConfig config = config_27b();
  EXPECT_ERROR(estimate_memory(config, {.context_tokens = -1}), ErrorCode::invalid_argument,
               {"context_tokens -1"});
  EXPECT_ERROR(estimate_memory(config, {.context_tokens = kPositionsMax + 1}),
               ErrorCode::invalid_argument, {"context_tokens"});
  EXPECT_ERROR(estimate_memory(config, {.context_tokens = 64, .sequences = -1}),
               ErrorCode::invalid_argument, {"-1 sequences"});
  EXPECT_ERROR(estimate_memory(
                   config, {.context_tokens = kPositionsMax, .sequences = std::int64_t{1} << 40}),
               ErrorCode::invalid_argument, {"not a memory size"});
}

}  // namespace
}  // namespace sluice
