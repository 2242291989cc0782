#include "weights/random_weights.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "weights/released_shapes.h"
#include "weights/tensor_registry.h"
#include "weights/test_models.h"

namespace sluice {
namespace {

TEST(ReleasedShapes, AreTheReleasesWithoutMtpAndVision) {
  for (const test::Release& release : test::kReleases) {
    const ModelConfig config = released_config(release.shape.name, 0).value();
    const ModelConfig read = test::release_config(release);
    EXPECT_EQ(config.layer_types, read.layer_types) << release.name;
    std::vector<TensorSpec> wanted = list_tensors(read, "model.");
    std::erase_if(wanted, [](const TensorSpec& spec) { return spec.group != TensorGroup::text; });
    const std::vector<TensorSpec> listed = list_tensors(config, "model.");
    ASSERT_EQ(listed.size(), wanted.size()) << release.name;
    for (std::size_t i = 0; i < listed.size(); ++i) {
      EXPECT_EQ(listed[i].name, wanted[i].name);
      EXPECT_EQ(listed[i].shape, wanted[i].shape) << listed[i].name;
    }
  }
}

TEST(ReleasedShapes, AreCutAfterTheFirstLayers) {
  const ModelConfig config = released_config("qwen3.6-27b", 5).value();
  EXPECT_EQ(config.num_hidden_layers, 5);
  ASSERT_EQ(config.layer_types.size(), 5U);
  EXPECT_EQ(config.layer_types[3], LayerType::full_attention);
  EXPECT_EQ(config.layer_types[4], LayerType::linear_attention);
}

TEST(ReleasedShapes, RefusesWhatIsNoShape) {
  const auto unknown = released_config("qwen3.5-1b", 0);
  ASSERT_FALSE(unknown);
  EXPECT_EQ(unknown.error().message,
            "\"qwen3.5-1b\" is no known shape: want one of qwen3.5-0.8b, qwen3.5-2b, qwen3.5-4b, "
            "qwen3.5-9b, qwen3.6-27b");
  EXPECT_FALSE(released_config("qwen3.5-0.8b", -1));
  const auto deep = released_config("qwen3.5-0.8b", 25);
  ASSERT_FALSE(deep);
  EXPECT_EQ(deep.error().message, "25 layers: qwen3.5-0.8b has 24");
}

TEST(RandomWeights, AreACheckpointOfTheConfig) {
  for (const std::string_view name : {"qwen3.5-0.8b", "qwen3.6-27b"}) {
    const ModelConfig config = released_config(name, 4).value();
    const Checkpoint checkpoint = make_random_checkpoint(config).value();
    EXPECT_TRUE(check_tensors(config, checkpoint));
    EXPECT_EQ(text_prefix(checkpoint).value(), "model.");
  }
}

TEST(RandomWeights, AreNormalAndDifferFromTensorToTensor) {
  const ModelConfig config = released_config("qwen3.5-0.8b", 1).value();
  const Checkpoint checkpoint = make_random_checkpoint(config).value();
  const std::string prefix = "model.layers.0.mlp.";
  std::vector<bf16_t> gate(std::size_t{100} * 1024);
  std::vector<bf16_t> up(gate.size());
  ASSERT_TRUE(read_matrix_rows_bf16(checkpoint, prefix + "gate_proj.weight", 3400, 100, gate));
  ASSERT_TRUE(read_matrix_rows_bf16(checkpoint, prefix + "up_proj.weight", 3400, 100, up));
  double square = 0.0;
  std::size_t equal = 0;
  for (std::size_t i = 0; i < gate.size(); ++i) {
    square += std::pow(static_cast<double>(bf16_to_float(gate[i])), 2);
    equal += gate[i] == up[i] ? 1 : 0;
  }
  EXPECT_NEAR(std::sqrt(square / static_cast<double>(gate.size())), 0.02, 0.0005);
  EXPECT_LT(equal, gate.size() / 50);
}

}  // namespace
}  // namespace sluice
