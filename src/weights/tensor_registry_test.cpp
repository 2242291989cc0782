#include "weights/tensor_registry.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

#include "weights/test_files.h"
#include "weights/test_models.h"

namespace sluice {
namespace {

using test::CheckpointFiles;

constexpr ErrorCode kCorrupt = ErrorCode::corrupt_data;
const std::string kLinear = "model.language_model.layers.0.";
const std::string kFull = "model.language_model.layers.1.";

// dtypes as released: BF16 but for A_log and linear_attn.norm, which are F32 up to 9B.
std::int64_t released_bytes(const TensorSpec& spec, bool all_bf16) {
  const bool is_f32 = !all_bf16 && (spec.name.ends_with("linear_attn.A_log") ||
                                    spec.name.ends_with("linear_attn.norm.weight"));
  return element_count(spec.shape) * (is_f32 ? 4 : 2);
}

TEST(TensorRegistry, ReproducesThePublishedTotals) {
  for (const test::Release& release : test::kReleases) {
    const std::vector<TensorSpec> specs =
        list_tensors(test::release_config(release), "model.language_model.");
    std::int64_t bytes = 0;
    std::set<std::string> names;
    for (const TensorSpec& spec : specs) {
      bytes += released_bytes(spec, release.name == "27B");
      names.insert(spec.name);
    }
    EXPECT_EQ(specs.size(), release.tensor_count) << release.name;
    EXPECT_EQ(names.size(), specs.size()) << release.name << ": a name is listed twice";
    EXPECT_EQ(bytes, release.tensor_bytes) << release.name;
  }
}

TEST(TensorRegistry, CountsTheGroups) {
  const std::vector<TensorSpec> specs =
      list_tensors(test::release_config(test::kReleases[4]), "model.");
  const auto count = [&](TensorGroup group) {
    return std::count_if(specs.begin(), specs.end(),
                         [&](const TensorSpec& spec) { return spec.group == group; });
  };
  EXPECT_EQ(count(TensorGroup::mtp), 15);
  EXPECT_EQ(count(TensorGroup::vision), 12 * 27 + 9);
}

TEST(TensorRegistry, AcceptsEveryLayoutOfACompleteModel) {
  EXPECT_TRUE(CheckpointFiles(test::tiny_json()).check().has_value());
  EXPECT_TRUE(CheckpointFiles(test::tiny_json(), "model.", "model.mtp.").check().has_value());
  CheckpointFiles mixed(test::tiny_json());
  mixed.set(kLinear + "linear_attn.A_log", DType::f32, {4});
  mixed.set(kLinear + "mlp.up_proj.weight", DType::f32, {48, 32});
  mixed.set(kLinear + "mlp.down_proj.weight", DType::f16, {32, 48});
  const Result<void> checked = mixed.check();
  EXPECT_TRUE(checked.has_value()) << checked.error().message;
}

TEST(TensorRegistry, AcceptsTheGoldenCheckpoints) {
  const std::filesystem::path goldens = std::filesystem::path(SLUICE_SOURCE_DIR) / "tests/goldens";
  for (const char* name : {"tiny08", "tiny27", "hf_flat", "hf_nested"}) {
    const Result<ModelConfig> config = load_model_config(goldens / name);
    ASSERT_TRUE(config.has_value()) << config.error().message;
    const Result<Checkpoint> checkpoint = Checkpoint::open(goldens / name);
    ASSERT_TRUE(checkpoint.has_value()) << checkpoint.error().message;
    const Result<void> checked = check_tensors(*config, *checkpoint);
    EXPECT_TRUE(checked.has_value()) << checked.error().message;
  }
}

TEST(TensorRegistry, GroupsAreAllOrNothing) {
  CheckpointFiles files(test::tiny_json());
  files.remove_prefix("mtp.");
  files.remove_prefix("model.visual.");
  EXPECT_TRUE(files.check().has_value());
  const Checkpoint text_only = *files.open();
  EXPECT_FALSE(has_group(files.config, text_only, TensorGroup::mtp));
  EXPECT_FALSE(has_group(files.config, text_only, TensorGroup::vision));

  CheckpointFiles partial(test::tiny_json());
  partial.tensors.erase("mtp.fc.weight");
  EXPECT_ERROR(partial.check(), kCorrupt, {"1 of 15 MTP tensors", "mtp.fc.weight [32, 64]"});
  EXPECT_TRUE(has_group(partial.config, *partial.open(), TensorGroup::mtp));

  CheckpointFiles blind(test::tiny_json());
  blind.remove_prefix("model.visual.blocks.");
  EXPECT_ERROR(blind.check(), kCorrupt,
               {"12 of 21 vision tensors", "model.visual.blocks.0", ", ..."});
}

TEST(TensorRegistry, RejectsMissingTextTensors) {
  CheckpointFiles files(test::tiny_json());
  files.tensors.erase(kLinear + "linear_attn.dt_bias");
  EXPECT_ERROR(files.check(), kCorrupt, {"1 of ", "text tensors are missing", "dt_bias [4]"});
  CheckpointFiles headless(test::tiny_json());
  headless.tensors.erase("lm_head.weight");
  EXPECT_ERROR(headless.check(), kCorrupt, {"lm_head.weight [40, 32]"});
  CheckpointFiles empty(test::tiny_json());
  empty.tensors.clear();
  EXPECT_ERROR(empty.check(), kCorrupt, {"embed_tokens.weight", "0 are there"});
}

TEST(TensorRegistry, RejectsExtraTensors) {
  CheckpointFiles files(test::tiny_json());
  files.set(kFull + "self_attn.q_proj.bias", DType::bf16, {128});
  EXPECT_ERROR(files.check(), kCorrupt,
               {"1 tensors that config.json does not account for", "q_proj.bias [128]"});
  // A whole group that the config does not name.
  boost::json::object no_vision = test::tiny_json();
  no_vision.erase("vision_config");
  CheckpointFiles sighted(test::tiny_json());
  sighted.config = test::config_of(no_vision);
  EXPECT_ERROR(sighted.check(), kCorrupt, {"21 tensors", "model.visual.", ", ..."});
}

TEST(TensorRegistry, RejectsMisshapenTensors) {
  CheckpointFiles files(test::tiny_json());
  files.set(kFull + "self_attn.q_proj.weight", DType::bf16, {64, 32});  // no gate rows
  EXPECT_ERROR(files.check(), kCorrupt, {"q_proj.weight: shape [64, 32], want [128, 32]"});
  CheckpointFiles flat(test::tiny_json());
  flat.set(kLinear + "linear_attn.conv1d.weight", DType::bf16, {128, 4});
  EXPECT_ERROR(flat.check(), kCorrupt, {"conv1d.weight: shape [128, 4], want [128, 1, 4]"});
}

TEST(TensorRegistry, RejectsOtherDTypes) {
  CheckpointFiles files(test::tiny_json());
  files.set(kLinear + "linear_attn.A_log", DType::f64, {4});
  EXPECT_ERROR(files.check(), kCorrupt, {"A_log: dtype F64, want BF16, F16 or F32"});
  CheckpointFiles integers(test::tiny_json());
  integers.set(kLinear + "mlp.up_proj.weight", DType::i8, {48, 32});
  EXPECT_ERROR(integers.check(), kCorrupt, {"up_proj.weight: dtype I8"});
  CheckpointFiles embedding(test::tiny_json());
  embedding.set("model.language_model.embed_tokens.weight", DType::f8_e4m3, {40, 32});
  EXPECT_ERROR(embedding.check(), kCorrupt, {"embed_tokens.weight: dtype F8_E4M3"});
}

TEST(TensorRegistry, RejectsAmbiguousPrefixes) {
  CheckpointFiles text(test::tiny_json());
  text.set("model.embed_tokens.weight", DType::bf16, {40, 32});
  EXPECT_ERROR(text.check(), kCorrupt, {"2 are there"});
  CheckpointFiles mtp(test::tiny_json());
  mtp.set("model.mtp.fc.weight", DType::bf16, {32, 64});
  EXPECT_ERROR(mtp.check(), kCorrupt, {"under both mtp. and model.mtp."});
}

class TiedCheckpoint : public testing::Test {
 protected:
  static boost::json::object tied_json() {
    boost::json::object json = test::tiny_json();
    json["text_config"].as_object()["tie_word_embeddings"] = true;
    return json;
  }
  CheckpointFiles files_{tied_json()};
};

TEST_F(TiedCheckpoint, NeedsNoHead) {
  EXPECT_FALSE(files_.tensors.contains("lm_head.weight"));
  EXPECT_TRUE(files_.check().has_value());
}

TEST_F(TiedCheckpoint, AcceptsAnEqualCopyOnly) {
  files_.set("lm_head.weight", DType::bf16, {40, 32});
  EXPECT_TRUE(files_.check().has_value());
  files_.bytes("lm_head.weight").back() = std::byte{0};
  EXPECT_ERROR(files_.check(), kCorrupt, {"lm_head.weight", "tie_word_embeddings is true"});
  files_.set("lm_head.weight", DType::f16, {40, 32});
  EXPECT_ERROR(files_.check(), kCorrupt, {"lm_head.weight"});
}

class Fp8Checkpoint : public testing::Test {
 protected:
  Fp8Checkpoint() : files_(fp8_json()) {
    files_.set(weight_, DType::f8_e4m3, {300, 32});
    files_.set(scale_, DType::bf16, {3, 1});
  }
  static boost::json::object fp8_json() {
    boost::json::object json = test::tiny_json();
    json["text_config"].as_object()["intermediate_size"] = 300;
    json["quantization_config"] = {{"quant_method", "fp8"}, {"weight_block_size", {128, 128}}};
    return json;
  }

  const std::string weight_ = kLinear + "mlp.up_proj.weight";
  const std::string scale_ = weight_ + "_scale_inv";
  CheckpointFiles files_;
};

TEST_F(Fp8Checkpoint, AcceptsMatricesWithScales) {
  Result<void> checked = files_.check();
  EXPECT_TRUE(checked.has_value()) << checked.error().message;
  files_.set(scale_, DType::f32, {3, 1});
  EXPECT_TRUE(files_.check().has_value());
  files_.set("mtp.layers.0.mlp.up_proj.weight", DType::f8_e4m3, {300, 32});
  files_.set("mtp.layers.0.mlp.up_proj.weight_scale_inv", DType::bf16, {3, 1});
  EXPECT_TRUE(files_.check().has_value());
}

TEST_F(Fp8Checkpoint, RejectsWrongScales) {
  files_.set(scale_, DType::bf16, {2, 1});
  EXPECT_ERROR(files_.check(), kCorrupt, {scale_ + ": shape [2, 1], want [3, 1]"});
  files_.set(scale_, DType::f16, {3, 1});
  EXPECT_ERROR(files_.check(), kCorrupt, {scale_ + ": dtype F16, want BF16 or F32"});
  files_.tensors.erase(scale_);
  EXPECT_ERROR(files_.check(), kCorrupt, {"dtype F8_E4M3, but", scale_ + " is missing"});
}

TEST_F(Fp8Checkpoint, RejectsAScaleWithoutFp8Weight) {
  files_.set(weight_, DType::bf16, {300, 32});
  EXPECT_ERROR(files_.check(), kCorrupt, {"does not account for", scale_});
}

TEST_F(Fp8Checkpoint, RejectsFp8WithoutQuantizationConfig) {
  files_.config.fp8_weights = false;
  EXPECT_ERROR(files_.check(), kCorrupt, {weight_, "no fp8 quantization_config"});
}

}  // namespace
}  // namespace sluice
