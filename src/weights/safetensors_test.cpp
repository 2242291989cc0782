#include "weights/safetensors.h"

#include <gtest/gtest.h>

#include <string>

#include "weights/test_files.h"

namespace sluice {
namespace {

using test::as_bytes;
using test::safetensors_image;

constexpr ErrorCode kCorrupt = ErrorCode::corrupt_data;

Result<TensorMap> parse_header(std::string_view header, std::size_t data_bytes) {
  const std::string image = safetensors_image(header, data_bytes);
  return parse_safetensors(as_bytes(image), "f");
}

TEST(SafetensorsParse, ReadsTensorsInAnyOrder) {
  const std::string image = safetensors_image(
      R"({"__metadata__": {"format": "pt"},
          "b": {"dtype": "BF16", "shape": [2, 3], "data_offsets": [4, 16]},
          "a": {"dtype": "F32", "shape": [], "data_offsets": [0, 4]},
          "empty": {"shape": [0, 7], "data_offsets": [4, 4], "dtype": "I8"}}   )",
      16);
  const Result<TensorMap> tensors = parse_safetensors(as_bytes(image), "f");
  ASSERT_TRUE(tensors.has_value()) << tensors.error().message;
  ASSERT_EQ(tensors->size(), 3U);
  const TensorView& b = tensors->at("b");
  EXPECT_EQ(b.dtype, DType::bf16);
  EXPECT_EQ(b.shape, (Shape{2, 3}));
  EXPECT_EQ(b.bytes.size(), 12U);
  EXPECT_EQ(reinterpret_cast<const char*>(b.bytes.data()), image.data() + image.size() - 12);
  EXPECT_TRUE(tensors->at("a").shape.empty());
  EXPECT_TRUE(tensors->at("empty").bytes.empty());
  EXPECT_TRUE(parse_header("{}", 0).has_value());
}

TEST(SafetensorsParse, ReadsNamesWithEscapes) {
  const Result<TensorMap> tensors = parse_header(
      R"({"a\u0062\"\u00e9": {"dtype": "U8", "shape": [1], "data_offsets": [0, 1]}})", 1);
  ASSERT_TRUE(tensors.has_value()) << tensors.error().message;
  EXPECT_TRUE(tensors->contains("ab\"\u00e9"));
}

TEST(SafetensorsParse, RejectsBrokenFrames) {
  EXPECT_ERROR(parse_safetensors({}, "f"), kCorrupt, {"f: 0 bytes, too short"});
  EXPECT_ERROR(parse_safetensors(as_bytes("1234567"), "f"), kCorrupt, {"7 bytes, too short"});
  const auto with_size = [](std::uint64_t size, std::string_view rest) {
    std::string image(sizeof(size), '\0');
    std::memcpy(image.data(), &size, sizeof(size));
    image += rest;
    return parse_safetensors(as_bytes(image), "f");
  };
  EXPECT_ERROR(with_size(3, "{}"), kCorrupt, {"header of 3 bytes, but only 2"});
  EXPECT_ERROR(with_size(100'000'001, "{}"), kCorrupt, {"the limit is 100000000"});
  EXPECT_ERROR(with_size(~std::uint64_t{0}, "{}"), kCorrupt, {"18446744073709551615"});
  EXPECT_ERROR(with_size(0, ""), kCorrupt, {"not valid JSON"});
}

struct Hostile {
  const char* header;
  std::size_t data_bytes;
  ErrorCode code;
  const char* first;
  const char* second;
};

class SafetensorsRejects : public testing::TestWithParam<Hostile> {};

TEST_P(SafetensorsRejects, WithAReason) {
  const Hostile& hostile = GetParam();
  EXPECT_ERROR(parse_header(hostile.header, hostile.data_bytes), hostile.code,
               {"f: ", hostile.first, hostile.second});
}

#define TENSOR(dtype, shape, offsets) \
  "\"dtype\": \"" dtype "\", \"shape\": " shape ", \"data_offsets\": " offsets

INSTANTIATE_TEST_SUITE_P(
    Json, SafetensorsRejects,
    testing::Values(
        Hostile{"", 0, kCorrupt, "not valid JSON", ""}, Hostile{"{", 0, kCorrupt, "not valid", ""},
        Hostile{"{}x", 0, kCorrupt, "not valid JSON", ""},
        Hostile{"5", 0, kCorrupt, "a number where none belongs", ""},
        Hostile{"[]", 0, kCorrupt, "a list where none belongs", ""},
        Hostile{"\"x\"", 0, kCorrupt, "a string where none belongs", ""},
        Hostile{"null", 0, kCorrupt, "a null where none belongs", ""},
        Hostile{"true", 0, kCorrupt, "a bool where none belongs", ""},
        Hostile{"{\"a\": 5}", 0, kCorrupt, "tensor a", "a number"},
        Hostile{"{\"a\": null}", 0, kCorrupt, "tensor a", "a null"},
        Hostile{"{\"a\xff\": 1}", 0, kCorrupt, "not valid JSON", ""},
        Hostile{"{\"a\": {\"dtype\": {\"x\": 1}}}", 0, kCorrupt, "tensor a", "an object"},
        Hostile{"{\"a\": {\"shape\": [[1]]}}", 0, kCorrupt, "tensor a", "a list"},
        Hostile{"{\"a\": {\"dtype\": [1]}}", 0, kCorrupt, "tensor a", "a list"},
        Hostile{"{\"a\": {\"shape\": \"x\"}}", 0, kCorrupt, "tensor a", "a string"},
        Hostile{"{\"a\": {\"shape\": 4}}", 0, kCorrupt, "tensor a", "a number"},
        Hostile{"{\"a\": {\"colour\": 4}}", 0, kCorrupt, "tensor a", "unknown key \"colour\""},
        Hostile{"{\"__metadata__\": {\"a\": 1}}", 0, kCorrupt, "__metadata__", "a number"},
        Hostile{"{\"__metadata__\": {}, \"__metadata__\": {}}", 0, kCorrupt, "__metadata__",
                "appears twice"},
        Hostile{"{\"a\": {\"dtype\": \"U8\", \"dtype\": \"U8\"}}", 0, kCorrupt, "tensor a",
                "\"dtype\" appears twice"}));

INSTANTIATE_TEST_SUITE_P(
    Tensors, SafetensorsRejects,
    testing::Values(
        Hostile{"{\"a\": {\"dtype\": \"U8\", \"shape\": [1]}}", 1, kCorrupt, "tensor a",
                "data_offsets is missing"},
        Hostile{"{\"a\": {\"dtype\": \"U8\", \"data_offsets\": [0, 1]}}", 1, kCorrupt, "tensor a",
                "shape is missing"},
        Hostile{"{\"a\": {\"shape\": [1], \"data_offsets\": [0, 1]}}", 1, kCorrupt, "tensor a",
                "dtype is missing"},
        Hostile{"{\"a\": {" TENSOR("F8_E5M2", "[1]", "[0, 1]") "}}", 1, ErrorCode::unsupported,
                "tensor a", "dtype \"F8_E5M2\""},
        Hostile{"{\"a\": {" TENSOR("bf16", "[1]", "[0, 2]") "}}", 2, ErrorCode::unsupported,
                "tensor a", "dtype \"bf16\""},
        Hostile{"{\"a\": {" TENSOR("U8", "[1.0]", "[0, 1]") "}}", 1, kCorrupt, "tensor a",
                "shape holds 1, want an integer"},
        Hostile{"{\"a\": {" TENSOR("U8", "[1]", "[0, 1e0]") "}}", 1, kCorrupt, "tensor a",
                "data_offsets holds"},
        Hostile{"{\"a\": {" TENSOR("U8", "[-1]", "[0, 1]") "}}", 1, kCorrupt, "tensor a",
                "shape holds -1"},
        Hostile{"{\"a\": {" TENSOR("U8", "[1]", "[-1, 0]") "}}", 1, kCorrupt, "tensor a",
                "data_offsets holds -1"},
        Hostile{"{\"a\": {" TENSOR("U8", "[1]", "[0]") "}}", 1, kCorrupt, "tensor a",
                "must have two entries"},
        Hostile{"{\"a\": {" TENSOR("U8", "[1]", "[0, 1, 2]") "}}", 1, kCorrupt, "tensor a",
                "must have two entries"},
        Hostile{"{\"a\": {" TENSOR("U8", "[1]", "[1, 0]") "}}", 1, kCorrupt, "tensor a",
                "data_offsets [1, 0]"},
        Hostile{"{\"a\": {" TENSOR("BF16", "[3]", "[0, 3]") "}}", 3, kCorrupt, "tensor a",
                "want 6 bytes for BF16 [3]"},
        Hostile{"{\"a\": {" TENSOR("U8", "[18446744073709551615]", "[0, 1]") "}}", 1, kCorrupt,
                "tensor a", "the limit is 9223372036854775807"},
        Hostile{"{\"a\": {" TENSOR("U8", "[4294967296, 4294967296]", "[0, 0]") "}}", 0, kCorrupt,
                "tensor a", "overflows"},
        Hostile{"{\"a\": {" TENSOR("F64", "[2305843009213693952]", "[0, 0]") "}}", 0, kCorrupt,
                "tensor a", "overflows"},
        Hostile{"{\"a\": {" TENSOR("U8", "[1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1]", "[0, 1]") "}}", 1,
                kCorrupt, "tensor a", "more than 16 axes"},
        Hostile{"{\"a\": {" TENSOR("U8", "[1]", "[0, 1]") "}, \"a\": {" TENSOR("U8", "[1]",
                                                                               "[1, 2]") "}}",
                2, kCorrupt, "tensor a", "appears twice"}));

INSTANTIATE_TEST_SUITE_P(
    Coverage, SafetensorsRejects,
    testing::Values(
        Hostile{"{\"a\": {" TENSOR("U8", "[4]", "[0, 4]") "}}", 3, kCorrupt, "tensor a",
                "past the data of 3 bytes"},
        Hostile{"{\"a\": {" TENSOR("U8", "[4]", "[9223372036854775800, 9223372036854775804]") "}}",
                4, kCorrupt, "tensor a", "past the data"},
        Hostile{"{\"a\": {" TENSOR("U8", "[2]", "[0, 2]") "}}", 3, kCorrupt, "3 bytes of data",
                "end at 2"},
        Hostile{"{\"a\": {" TENSOR("U8", "[2]", "[1, 3]") "}}", 3, kCorrupt, "tensor a",
                "leave a hole after byte 0"},
        Hostile{"{\"a\": {" TENSOR("U8", "[2]", "[0, 2]") "}, \"b\": {" TENSOR("U8", "[2]",
                                                                               "[1, 3]") "}}",
                3, kCorrupt, "tensor b", "overlap another tensor that ends at 2"},
        Hostile{"{\"a\": {" TENSOR("U8", "[2]", "[0, 2]") "}, \"b\": {" TENSOR("U8", "[2]",
                                                                               "[0, 2]") "}}",
                2, kCorrupt, "tensor", "overlap"},
        Hostile{"{\"a\": {" TENSOR("U8", "[2]", "[0, 2]") "}, \"b\": {" TENSOR("U8", "[0]",
                                                                               "[1, 1]") "}}",
                2, kCorrupt, "tensor b", "overlap"},
        Hostile{"{}", 1, kCorrupt, "1 bytes of data", "end at 0"}));

TEST(SafetensorsParse, BoundsWhatANameMayCost) {
  const std::string long_name = "{\"" + std::string(5000, 'n') + "\": {}}";
  EXPECT_ERROR(parse_header(long_name, 0), kCorrupt, {"longer than 1024 bytes"});
  const std::string deep = "{\"a\": {\"shape\": " + std::string(1'000'000, '[');
  EXPECT_ERROR(parse_header(deep, 0), kCorrupt, {"f: "});
  const std::string list = "{\"a\": {\"shape\": [" + std::string(1'000'000, '1');
  EXPECT_ERROR(parse_header(list, 0), kCorrupt, {"f: "});
}

class CheckpointOpen : public testing::Test {
 protected:
  void write_shard(const std::string& file, const std::string& tensor) {
    test::write_file(
        directory_ / file,
        safetensors_image("{\"" + tensor + "\": {" TENSOR("U8", "[2]", "[0, 2]") "}}", 2));
  }
  void write_index(const std::string& weight_map) {
    test::write_file(directory_ / "model.safetensors.index.json",
                     R"({"metadata": {"total_size": 4}, "weight_map": )" + weight_map + "}");
  }
  Result<Checkpoint> open() { return Checkpoint::open(directory_.path()); }

  test::TemporaryDirectory directory_;
};

TEST_F(CheckpointOpen, SingleFile) {
  write_shard("model.safetensors", "a");
  Result<Checkpoint> checkpoint = open();
  ASSERT_TRUE(checkpoint.has_value()) << checkpoint.error().message;
  const Checkpoint moved = std::move(*checkpoint);  // views stay valid
  ASSERT_NE(moved.find("a"), nullptr);
  EXPECT_EQ(moved.find("a")->bytes[0], std::byte{1});
  EXPECT_EQ(moved.find("b"), nullptr);
  EXPECT_EQ(moved.file_bytes(), std::filesystem::file_size(directory_ / "model.safetensors"));
  EXPECT_EQ(moved.directory(), directory_.path());
}

TEST_F(CheckpointOpen, Shards) {
  write_shard("x-00001.safetensors", "a");
  write_shard("x-00002.safetensors", "b");
  write_index(R"({"a": "x-00001.safetensors", "b": "x-00002.safetensors"})");
  const Result<Checkpoint> checkpoint = open();
  ASSERT_TRUE(checkpoint.has_value()) << checkpoint.error().message;
  EXPECT_EQ(checkpoint->tensors().size(), 2U);
}

TEST_F(CheckpointOpen, RejectsWhatIsNotThere) {
  EXPECT_ERROR(Checkpoint::open(directory_ / "none"), ErrorCode::not_found, {"none"});
  EXPECT_ERROR(open(), ErrorCode::not_found, {"neither model.safetensors nor"});
  write_index(R"({"a": "x.safetensors"})");
  EXPECT_ERROR(open(), ErrorCode::not_found, {"x.safetensors"});
  std::filesystem::create_directory(directory_ / "x.safetensors");
  EXPECT_ERROR(open(), ErrorCode::io, {"x.safetensors"});
}

TEST_F(CheckpointOpen, RejectsATruncatedFile) {
  write_shard("model.safetensors", "a");
  const std::string image = test::read_file(directory_ / "model.safetensors");
  for (std::size_t size = 0; size < image.size(); ++size) {
    test::write_file(directory_ / "model.safetensors", std::string_view(image).substr(0, size));
    EXPECT_ERROR(open(), kCorrupt, {"model.safetensors"});
  }
}

TEST_F(CheckpointOpen, RejectsAnInconsistentIndex) {
  write_shard("x-1.safetensors", "a");
  write_shard("x-2.safetensors", "b");
  write_index(R"({"a": "x-1.safetensors", "b": "x-2.safetensors", "c": "x-2.safetensors"})");
  EXPECT_ERROR(open(), kCorrupt, {"tensor c is not in its shard x-2.safetensors"});
  write_index(R"({"a": "x-1.safetensors", "c": "x-2.safetensors"})");
  EXPECT_ERROR(open(), kCorrupt, {"x-2.safetensors holds tensor b, which the index does not list"});
  write_index(R"({"a": "x-1.safetensors", "b": "x-1.safetensors", "c": "x-2.safetensors"})");
  EXPECT_ERROR(open(), kCorrupt, {"holds tensor b, which the index puts into x-1.safetensors"});
  write_shard("x-2.safetensors", "a");  // the same tensor in two shards
  write_index(R"({"a": "x-1.safetensors", "b": "x-2.safetensors"})");
  EXPECT_ERROR(open(), kCorrupt, {"holds tensor a, which the index puts into x-1.safetensors"});
}

TEST_F(CheckpointOpen, RejectsPathsInTheIndex) {
  write_shard("x.safetensors", "a");
  for (const char* shard : {"../x.safetensors", "/etc/passwd", "..", ".", "", "a/b", "a\\\\b",
                            "x.safetensors\\u0000"}) {
    write_index("{\"a\": \"" + std::string(shard) + "\"}");
    EXPECT_ERROR(open(), kCorrupt, {"weight_map.a", "without directories"});
  }
}

TEST_F(CheckpointOpen, RejectsABrokenIndex) {
  for (const char* weight_map : {"[]", "null", "7"}) {
    write_index(weight_map);
    EXPECT_ERROR(open(), kCorrupt, {"index.json", "weight_map"});
  }
  write_index("{\"a\": 1}");
  EXPECT_ERROR(open(), kCorrupt, {"weight_map.a is not a file name"});
  write_index(R"({"a": "x", "a": "y"})");
  EXPECT_ERROR(open(), kCorrupt, {"\"a\" appears twice"});
  test::write_file(directory_ / "model.safetensors.index.json", "[");
  EXPECT_ERROR(open(), kCorrupt, {"not valid JSON"});
  test::write_file(directory_ / "model.safetensors.index.json",
                   std::string(kShardIndexBytesMax + 1, ' '));
  EXPECT_ERROR(open(), ErrorCode::resource_exhausted, {"index.json"});
}

TEST_F(CheckpointOpen, RejectsTwoAnswersToWhichWeights) {
  write_shard("model.safetensors", "a");
  write_shard("x.safetensors", "a");
  write_index(R"({"a": "x.safetensors"})");
  EXPECT_ERROR(open(), kCorrupt, {"does not name the model.safetensors beside it"});
  write_index(R"({"a": "model.safetensors"})");
  EXPECT_TRUE(open().has_value());
}

TEST_F(CheckpointOpen, RejectsTooManyShards) {
  std::string weight_map = "{";
  for (std::size_t i = 0; i <= kShardsMax; ++i) {
    weight_map += (i == 0 ? "\"" : ",\"") + std::to_string(i) + "\":\"" + std::to_string(i) + "\"";
  }
  write_index(weight_map + "}");
  EXPECT_ERROR(open(), kCorrupt, {"4097 shards, the limit is 4096"});
}

}  // namespace
}  // namespace sluice
