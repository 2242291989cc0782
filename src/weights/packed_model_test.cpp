// Packed directories: what is written is what is read, and what is damaged, cut, foreign or newer
// is refused by name.
#include "weights/packed_model.h"

#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "weights/pack_model.h"
#include "weights/test_files.h"
#include "weights/test_models.h"

namespace sluice {
namespace {

constexpr const char* kMatrix = "model.language_model.layers.0.mlp.down_proj.weight";
constexpr const char* kGate = "model.language_model.layers.0.linear_attn.in_proj_a.weight";

// A small model and a folder to pack it into.
class PackTest : public testing::Test {
 protected:
  PackTest() : json_(test::tiny_json()), files_(json_) {
    std::uint32_t state = 1;
    for (const auto& [name, view] : files_.tensors) {
      for (std::byte& byte : files_.bytes(name)) {  // bf16 of all sizes around 2^-7, both signs
        state = state * 1664525 + 1013904223;
        byte = static_cast<std::byte>((state >> 24) & 0xbfU);
      }
    }
    test::write_file(files_.directory / "config.json", boost::json::serialize(json_));
    test::write_file(files_.directory / "tokenizer.json", "{}");
  }

  std::filesystem::path out() const { return folder_ / "packed"; }
  Result<Manifest> pack(WeightPreset preset) {
    const Checkpoint checkpoint = SLUICE_TRY(files_.open());
    return pack_model(files_.config, checkpoint, {.out = out(), .preset = preset, .source = "fp_x"},
                      pool_, {});
  }
  void expect_refused(ErrorCode code, std::initializer_list<std::string_view> parts) {
    const Result<Checkpoint> opened = Checkpoint::open(out());
    EXPECT_EQ(test::error_mismatch(opened, code, parts), "");
  }
  // Replaces text in the manifest.
  void edit_manifest(std::string_view from, std::string_view to) {
    std::string text = test::read_file(out() / kManifestFile);
    const std::size_t at = text.find(from);
    ASSERT_NE(at, std::string::npos) << from;
    text.replace(at, from.size(), to);
    test::write_file(out() / kManifestFile, text);
  }

  ThreadPool pool_{2};
  boost::json::object json_;
  test::CheckpointFiles files_;
  test::TemporaryDirectory folder_;
};

TEST_F(PackTest, HoldsTheRowsThatWerePackedAndTheRestAsItWas) {
  for (const WeightPreset preset : kWeightPresets) {
    const Result<Manifest> manifest = pack(preset);
    ASSERT_TRUE(manifest.has_value()) << manifest.error().message;
    const Result<Checkpoint> packed = Checkpoint::open(out());
    ASSERT_TRUE(packed.has_value()) << packed.error().message;
    EXPECT_TRUE(check_tensors(files_.config, *packed).has_value());
    EXPECT_TRUE(packed->packed()->verify(pool_).has_value());
    EXPECT_EQ(packed->packed()->preset(), preset);
    EXPECT_EQ(packed->packed()->manifest().source, "fp_x");
    EXPECT_EQ(test::read_file(out() / "tokenizer.json"), "{}");
    EXPECT_EQ(packed->find(kMatrix), nullptr);
    const PackedTensor* tensor = packed->packed()->find(kMatrix);
    ASSERT_NE(tensor, nullptr);
    EXPECT_EQ(tensor->format, weight_format(preset, kMatrix));
    EXPECT_EQ(packed->packed()->find(kGate)->format, kernels::WeightFormat::bf16);
    const std::int64_t n = tensor->shape[0];
    const std::int64_t k = tensor->shape[1];
    std::vector<bf16_t> rows(static_cast<std::size_t>(n * k));
    std::memcpy(rows.data(), files_.bytes(kMatrix).data(), rows.size() * 2);
    std::vector<std::byte> expected(tensor->bytes.size());
    kernels::pack_weight_rows(tensor->format, {.values = rows.data()}, 0, n, k, expected.data());
    EXPECT_TRUE(std::ranges::equal(tensor->bytes, expected)) << to_string(preset);
    for (const auto& [name, view] : files_.tensors) {
      if (packed->packed()->find(name) == nullptr) {
        const TensorView* plain = packed->find(name);
        ASSERT_NE(plain, nullptr) << name;
        EXPECT_TRUE(plain->dtype == view.dtype && plain->shape == view.shape &&
                    std::ranges::equal(plain->bytes, view.bytes))
            << name;
      }
    }
    for (const ManifestTensor& entry : manifest->tensors) {
      EXPECT_EQ(entry.error > 0.0, entry.packed && *entry.packed != kernels::WeightFormat::bf16)
          << entry.name;
      EXPECT_LT(entry.error, 0.2) << entry.name;
    }
    std::filesystem::remove_all(out());
  }
}

TEST_F(PackTest, TheSameForAnyNumberOfThreads) {
  for (const WeightPreset preset : {WeightPreset::fp8, WeightPreset::int4}) {
    ASSERT_TRUE(pack(preset).has_value());
    const std::string manifest = test::read_file(out() / kManifestFile);
    const std::string weights = test::read_file(out() / kPackedWeightsFile);
    std::filesystem::remove_all(out());
    ThreadPool one(1);
    const Checkpoint checkpoint = *files_.open();
    ASSERT_TRUE(pack_model(files_.config, checkpoint,
                           {.out = out(), .preset = preset, .source = "fp_x"}, one, {}));
    EXPECT_EQ(test::read_file(out() / kManifestFile), manifest);
    EXPECT_EQ(test::read_file(out() / kPackedWeightsFile), weights);
    std::filesystem::remove_all(out());
  }
}

// Blocks of an official checkpoint are packed as they are, whatever the largest code of a block is,
// and the matrix that it left in bf16 is rounded.
TEST_F(PackTest, BlocksOfFp8AreKept) {
  json_["text_config"].as_object()["intermediate_size"] = 300;
  json_["quantization_config"] = {{"quant_method", "fp8"}, {"weight_block_size", {128, 128}}};
  test::CheckpointFiles files(json_);
  const std::string name = "model.language_model.layers.0.mlp.up_proj.weight";
  files.set(name, DType::f8_e4m3, {300, 32});
  files.set(name + "_scale_inv", DType::f32, {3, 1});
  std::vector<std::uint8_t> codes(std::size_t{300} * 32);
  for (std::size_t i = 0; i < codes.size(); ++i) {
    codes[i] = static_cast<std::uint8_t>(i * 29 % 0x60 + i % 2 * 0x80);
  }
  const std::vector<float> scales{0.3F, -2e-3F, 0x1p-12F};
  std::memcpy(files.bytes(name).data(), codes.data(), codes.size());
  std::memcpy(files.bytes(name + "_scale_inv").data(), scales.data(), scales.size() * 4);
  test::write_file(files.directory / "config.json", boost::json::serialize(json_));
  const Checkpoint checkpoint = *files.open();
  const Result<Manifest> manifest =
      pack_model(files.config, checkpoint,
                 {.out = out(), .preset = WeightPreset::fp8, .source = ""}, pool_, {});
  ASSERT_TRUE(manifest.has_value()) << manifest.error().message;
  for (const ManifestTensor& entry : manifest->tensors) {
    EXPECT_NE(entry.name, name + "_scale_inv");
    EXPECT_EQ(entry.error, 0.0)
        << entry.name;  // the others are 0x3c3c throughout: their own largest
  }
  const Checkpoint packed = *Checkpoint::open(out());
  EXPECT_TRUE(check_tensors(files.config, packed).has_value());
  const PackedTensor* tensor = packed.packed()->find(name);
  ASSERT_NE(tensor, nullptr);
  ASSERT_EQ(tensor->format, kernels::WeightFormat::fp8);
  std::vector<std::byte> expected(tensor->bytes.size());
  kernels::pack_weight_rows(tensor->format,
                            {.values = nullptr, .codes = codes.data(), .scales = scales.data()}, 0,
                            300, 32, expected.data());
  EXPECT_TRUE(std::ranges::equal(tensor->bytes, expected));
}

TEST_F(PackTest, ATiedHeadIsPackedBesideItsEmbedding) {
  json_["text_config"].as_object()["tie_word_embeddings"] = true;
  test::CheckpointFiles tied(json_);
  tied.tensors.erase("lm_head.weight");
  test::write_file(tied.directory / "config.json", boost::json::serialize(json_));
  const Checkpoint checkpoint = *tied.open();
  ASSERT_TRUE(pack_model(tied.config, checkpoint,
                         {.out = out(), .preset = WeightPreset::int8, .source = ""}, pool_, {}));
  const Checkpoint packed = *Checkpoint::open(out());
  constexpr const char* kEmbedding = "model.language_model.embed_tokens.weight";
  EXPECT_TRUE(check_tensors(tied.config, packed).has_value());
  ASSERT_NE(packed.find(kEmbedding), nullptr);
  ASSERT_NE(packed.packed()->find(kEmbedding), nullptr);
  EXPECT_EQ(packed.packed()->find(kEmbedding)->format, kernels::WeightFormat::int8);
}

TEST_F(PackTest, WhatIsThereStays) {
  test::write_file(folder_ / "packed", "a file");
  const Result<Manifest> over_file = pack(WeightPreset::int8);
  EXPECT_ERROR(over_file, ErrorCode::invalid_argument, {"packed exists"});
  std::filesystem::remove(out());
  std::filesystem::create_directory(out());
  test::write_file(out() / "x", "");
  EXPECT_ERROR(pack(WeightPreset::int8), ErrorCode::invalid_argument, {"packed exists"});
  std::filesystem::remove(out() / "x");
  EXPECT_TRUE(pack(WeightPreset::int8).has_value()) << "an empty directory is free";
  EXPECT_EQ(folder_.file_count(), 1U);
}

TEST_F(PackTest, NothingIsLeftOfAnErrorHalfWay) {
  std::span<std::byte> bytes = files_.bytes("lm_head.weight");
  bytes[bytes.size() - 1] = std::byte{0x7f};  // the last value of the head is no number
  bytes[bytes.size() - 2] = std::byte{0xc0};
  EXPECT_ERROR(pack(WeightPreset::int8), ErrorCode::corrupt_data, {"lm_head.weight", "row 39"});
  EXPECT_EQ(folder_.file_count(), 0U);
}

TEST_F(PackTest, APackedModelIsNotPackedAgain) {
  ASSERT_TRUE(pack(WeightPreset::int8).has_value());
  const Checkpoint packed = *Checkpoint::open(out());
  EXPECT_ERROR(
      pack_model(files_.config, packed,
                 {.out = folder_ / "again", .preset = WeightPreset::int4, .source = ""}, pool_, {}),
      ErrorCode::invalid_argument, {"packed already", "int8"});
  EXPECT_ERROR(resolve_preset(WeightPreset::int4, packed), ErrorCode::invalid_argument,
               {"int4", "packed as int8"});
  EXPECT_EQ(*resolve_preset(std::nullopt, packed), WeightPreset::int8);
}

TEST_F(PackTest, DamageIsFoundByTensor) {
  const Manifest manifest = *pack(WeightPreset::int8);
  std::string weights = test::read_file(out() / kPackedWeightsFile);
  for (const ManifestTensor& tensor : manifest.tensors) {
    std::string damaged = weights;
    damaged[tensor.offset + tensor.bytes / 2] ^= 4;
    test::write_file(out() / kPackedWeightsFile, damaged);
    const Checkpoint packed = *Checkpoint::open(out());
    EXPECT_ERROR(packed.packed()->verify(pool_), ErrorCode::corrupt_data,
                 {tensor.name, "checksum"});
  }
}

TEST_F(PackTest, CutAndGrownFilesAreRefused) {
  ASSERT_TRUE(pack(WeightPreset::int8).has_value());
  const std::string weights = test::read_file(out() / kPackedWeightsFile);
  const std::string manifest = test::read_file(out() / kManifestFile);
  test::write_file(out() / kPackedWeightsFile, weights.substr(0, weights.size() - 1));
  expect_refused(ErrorCode::corrupt_data, {"weights.sluice", "truncated"});
  test::write_file(out() / kPackedWeightsFile, weights + "x");
  expect_refused(ErrorCode::corrupt_data, {"weights.sluice"});
  std::filesystem::remove(out() / kPackedWeightsFile);
  expect_refused(ErrorCode::not_found, {"weights.sluice"});
  test::write_file(out() / kPackedWeightsFile, weights);
  test::write_file(out() / kManifestFile, manifest.substr(0, manifest.size() / 2));
  expect_refused(ErrorCode::corrupt_data, {"sluice.json"});
}

TEST_F(PackTest, ForeignAndNewerManifestsAreRefused) {
  struct Case {
    std::string_view from;
    std::string_view to;
    ErrorCode code;
    std::string_view part;
  };
  const Case cases[] = {
      {"sluice-packed-model", "some-other-model", ErrorCode::corrupt_data, "not a packed model"},
      {"\"format_version\":1", "\"format_version\":2", ErrorCode::unsupported, "format version 2"},
      {"\"numerics_version\":", "\"numerics_version\":9", ErrorCode::unsupported, "numerics"},
      {"\"preset\":\"int8\"", "\"preset\":\"int3\"", ErrorCode::unsupported, "int3"},
      {"\"form\":\"int8\"", "\"form\":\"int7\"", ErrorCode::corrupt_data, "int7"},
      {"\"form\":\"int8\"", "\"form\":\"int4\"", ErrorCode::corrupt_data, "bytes"},
      {"\"offset\":0", "\"offset\":64", ErrorCode::corrupt_data, "offset"},
      {"\"offset\":0", "\"offset\":-1", ErrorCode::corrupt_data, "offset"},
      {"\"shape\":[", "\"shape\":[0,", ErrorCode::corrupt_data, "shape"},
      {"\"tensors\":[", "\"tensors\":[3,", ErrorCode::corrupt_data, "tensors[0]"},
      {"\"weight_bytes\":", "\"weight_bytes\":\"x\",\"y\":", ErrorCode::corrupt_data,
       "weight_bytes"},
  };
  for (const Case& c : cases) {
    ASSERT_TRUE(pack(WeightPreset::int8).has_value());
    edit_manifest(c.from, c.to);
    expect_refused(c.code, {"sluice.json", c.part});
    std::filesystem::remove_all(out());
  }
}

TEST_F(PackTest, TensorsThatTheConfigDoesNotKnowAreRefused) {
  ASSERT_TRUE(pack(WeightPreset::int8).has_value());
  edit_manifest("layers.0.mlp.down_proj", "layers.7.mlp.down_proj");
  const Checkpoint packed = *Checkpoint::open(out());
  EXPECT_ERROR(check_tensors(files_.config, packed), ErrorCode::corrupt_data,
               {"missing", "layers.0.mlp.down_proj"});
}

TEST_F(PackTest, AnotherConfigIsRefused) {
  ASSERT_TRUE(pack(WeightPreset::int8).has_value());
  test::write_file(out() / "config.json", "{}");
  expect_refused(ErrorCode::corrupt_data, {"config.json", "is not the one"});
}

TEST(Checksum, IsTheSameInParallel) {
  ThreadPool pool(3);
  std::vector<std::byte> bytes((std::size_t{9} << 20) + 7);
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    bytes[i] = static_cast<std::byte>(i * i >> 3);
  }
  EXPECT_EQ(checksum(bytes, pool), checksum(bytes));
  EXPECT_EQ(checksum({}, pool), checksum({}));
  EXPECT_EQ(checksum(test::as_bytes("123456789")), 0xcbf43926U);
}

}  // namespace
}  // namespace sluice
