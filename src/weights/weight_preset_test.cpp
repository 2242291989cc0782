#include "weights/weight_preset.h"

#include <gtest/gtest.h>

namespace sluice {
namespace {

using kernels::WeightFormat;

TEST(WeightPreset, NamesAreReadBack) {
  for (const WeightPreset preset : kWeightPresets) {
    EXPECT_EQ(weight_preset_from_name(to_string(preset)), preset);
  }
  EXPECT_EQ(to_string(WeightPreset::mlp_fp8), "mlp-fp8");
  EXPECT_FALSE(weight_preset_from_name("fp4").has_value());
}

TEST(WeightPreset, FormatsOfTheMatrices) {
  const auto format = [](WeightPreset preset, const char* name) {
    return weight_format(preset, name);
  };
  const char* mlp = "model.language_model.layers.3.mlp.down_proj.weight";
  EXPECT_EQ(format(WeightPreset::bf16, mlp), WeightFormat::bf16);
  EXPECT_EQ(format(WeightPreset::int8, mlp), WeightFormat::int8);
  EXPECT_EQ(format(WeightPreset::int4, mlp), WeightFormat::int4);
  EXPECT_EQ(format(WeightPreset::fp8, mlp), WeightFormat::fp8);
  EXPECT_EQ(format(WeightPreset::mlp_fp8, mlp), WeightFormat::fp8);
  const char* mixer = "model.layers.0.linear_attn.out_proj.weight";
  EXPECT_EQ(format(WeightPreset::fp8, mixer), WeightFormat::fp8);
  EXPECT_EQ(format(WeightPreset::mlp_fp8, mixer), WeightFormat::bf16);
  for (const char* head : {"lm_head.weight", "model.embed_tokens.weight"}) {
    EXPECT_EQ(format(WeightPreset::bf16, head), WeightFormat::bf16);
    EXPECT_EQ(format(WeightPreset::fp8, head), WeightFormat::bf16);
    EXPECT_EQ(format(WeightPreset::mlp_fp8, head), WeightFormat::bf16);
    EXPECT_EQ(format(WeightPreset::int8, head), WeightFormat::int8);
    EXPECT_EQ(format(WeightPreset::int4, head), WeightFormat::int8);
  }
  for (const WeightPreset preset : kWeightPresets) {
    for (const char* name : {"model.layers.0.linear_attn.in_proj_a.weight",
                             "model.layers.0.linear_attn.in_proj_b.weight",
                             "model.visual.blocks.0.mlp.linear_fc1.weight", "mtp.fc.weight"}) {
      EXPECT_EQ(format(preset, name), WeightFormat::bf16) << name;
    }
  }
}

}  // namespace
}  // namespace sluice
