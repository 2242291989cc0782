#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "platform/float_mode.h"
#include "weights/tensor_registry.h"
#include "weights/test_files.h"

namespace sluice {
namespace {

template <typename T>
std::string raw(const std::vector<T>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)};
}

std::string entry(std::string_view name, std::string_view dtype, const Shape& shape,
                  std::size_t begin, std::size_t end) {
  return "\"" + std::string(name) + "\":{\"dtype\":\"" + std::string(dtype) +
         "\",\"shape\":" + to_string(shape) + ",\"data_offsets\":[" + std::to_string(begin) + "," +
         std::to_string(end) + "]}";
}

// A checkpoint of one or two tensors whose data start at an odd address.
class ReadTest : public testing::Test {
 protected:
  void add(std::string_view name, std::string_view dtype, const Shape& shape,
           const std::string& bytes) {
    header_ += (header_.empty() ? "" : ",") +
               entry(name, dtype, shape, data_.size(), data_.size() + bytes.size());
    data_ += bytes;
  }
  Checkpoint open() {
    std::string header = "{" + header_ + "}";
    header.append((header.size() + 1) % 2, ' ');  // odd length: the data are misaligned
    std::string image = test::safetensors_image(header, 0) + data_;
    test::write_file(directory_ / "model.safetensors", image);
    Result<Checkpoint> checkpoint = Checkpoint::open(directory_.path());
    EXPECT_TRUE(checkpoint.has_value()) << checkpoint.error().message;
    return std::move(*checkpoint);
  }
  void reset() {
    header_.clear();
    data_.clear();
  }

  test::TemporaryDirectory directory_;
  std::string header_;
  std::string data_;
};

TEST_F(ReadTest, CopiesBf16) {
  const std::vector<bf16_t> values{0x3f80, 0x4000, 0xc040, 0x0001, 0x8000, 0x7f7f};
  add("w", "BF16", {3, 2}, raw(values));
  const Checkpoint checkpoint = open();
  ASSERT_NE(reinterpret_cast<std::uintptr_t>(checkpoint.find("w")->bytes.data()) % 2, 0U);
  std::vector<bf16_t> out(6);
  ASSERT_TRUE(read_matrix_rows_bf16(checkpoint, "w", 0, 3, out).has_value());
  EXPECT_EQ(out, values);
  out.resize(2);
  ASSERT_TRUE(read_matrix_rows_bf16(checkpoint, "w", 2, 1, out).has_value());
  EXPECT_EQ(out, (std::vector<bf16_t>{0x8000, 0x7f7f}));
  EXPECT_TRUE(read_matrix_rows_bf16(checkpoint, "w", 3, 0, {}).has_value());
}

TEST_F(ReadTest, RoundsF32AndF16Once) {
  // Ties to even in both directions, and just above a tie.
  const std::vector<float> values{1.0F, std::bit_cast<float>(0x3f808000U),
                                  std::bit_cast<float>(0x3f818000U),
                                  std::bit_cast<float>(0x3f808001U)};
  add("w", "F32", {2, 2}, raw(values));
  add("h", "F16", {1, 2}, raw(std::vector<std::uint16_t>{0x3c01, 0xc00c}));
  const Checkpoint checkpoint = open();
  std::vector<bf16_t> out(4);
  ASSERT_TRUE(read_matrix_rows_bf16(checkpoint, "w", 0, 2, out).has_value());
  EXPECT_EQ(out, (std::vector<bf16_t>{0x3f80, 0x3f80, 0x3f82, 0x3f81}));
  out.resize(2);
  ASSERT_TRUE(read_matrix_rows_bf16(checkpoint, "h", 0, 1, out).has_value());
  EXPECT_EQ(out, (std::vector<bf16_t>{0x3f80, 0xc002}));  // -2.0234375 is a tie: to even
}

TEST_F(ReadTest, FlattensLaterAxes) {
  add("w", "BF16", {2, 1, 2}, raw(std::vector<bf16_t>{1, 2, 3, 4}));
  const Checkpoint checkpoint = open();
  std::vector<bf16_t> out(2);
  ASSERT_TRUE(read_matrix_rows_bf16(checkpoint, "w", 1, 1, out).has_value());
  EXPECT_EQ(out, (std::vector<bf16_t>{3, 4}));
}

TEST_F(ReadTest, ReadsVectorsExactly) {
  add("b", "BF16", {2}, raw(std::vector<bf16_t>{0x3f80, 0x8001}));
  add("h", "F16", {2}, raw(std::vector<std::uint16_t>{0x0001, 0x7bff}));
  add("f", "F32", {1, 1, 2}, raw(std::vector<float>{0.1F, -3e38F}));
  const Checkpoint checkpoint = open();
  EXPECT_EQ(*read_vector_f32(checkpoint, "b"),
            (std::vector<float>{1.0F, std::bit_cast<float>(0x80010000U)}));
  EXPECT_EQ(*read_vector_f32(checkpoint, "h"), (std::vector<float>{0x1p-24F, 65504.0F}));
  EXPECT_EQ(*read_vector_f32(checkpoint, "f"), (std::vector<float>{0.1F, -3e38F}));
}

TEST_F(ReadTest, RejectsBadRequests) {
  add("w", "BF16", {3, 2}, raw(std::vector<bf16_t>(6)));
  add("v", "BF16", {3}, raw(std::vector<bf16_t>(3)));
  add("i", "I8", {1, 3}, "abc");
  const Checkpoint checkpoint = open();
  std::vector<bf16_t> out(6);
  const auto read = [&](std::string_view name, std::int64_t begin, std::int64_t count) {
    return read_matrix_rows_bf16(checkpoint, name, begin, count, out);
  };
  EXPECT_ERROR(read("none", 0, 3), ErrorCode::not_found, {"tensor none", "not in"});
  EXPECT_ERROR(read("v", 0, 3), ErrorCode::invalid_argument, {"tensor v: shape [3]"});
  EXPECT_ERROR(read("w", 1, 3), ErrorCode::invalid_argument, {"tensor w: 3 rows from 1", "[3, 2]"});
  EXPECT_ERROR(read("w", -1, 3), ErrorCode::invalid_argument, {"from -1"});
  EXPECT_ERROR(read("w", 0, -3), ErrorCode::invalid_argument, {"-3 rows"});
  EXPECT_ERROR(read("w", 4, 0), ErrorCode::invalid_argument, {"0 rows from 4"});
  EXPECT_ERROR(read("w", 0, 2), ErrorCode::invalid_argument, {"into 6 values"});
  EXPECT_ERROR(read("w", std::numeric_limits<std::int64_t>::max(), 3), ErrorCode::invalid_argument,
               {"tensor w"});
  out.resize(3);
  EXPECT_ERROR(read("i", 0, 1), ErrorCode::unsupported, {"tensor i: dtype I8"});
  EXPECT_ERROR(read_vector_f32(checkpoint, "i"), ErrorCode::unsupported, {"tensor i: dtype I8"});
  EXPECT_ERROR(read_vector_f32(checkpoint, "none"), ErrorCode::not_found, {"tensor none"});
}

TEST_F(ReadTest, RejectsValuesThatAreNotFinite) {
  const float infinity = std::numeric_limits<float>::infinity();
  add("w", "BF16", {2, 2}, raw(std::vector<bf16_t>{0, 0, 0, 0x7fc0}));
  add("f", "F32", {1, 2}, raw(std::vector<float>{0, 3.4e38F}));  // above the largest bf16
  add("v", "F32", {2}, raw(std::vector<float>{0, infinity}));
  const Checkpoint checkpoint = open();
  std::vector<bf16_t> out(2);
  EXPECT_TRUE(read_matrix_rows_bf16(checkpoint, "w", 0, 1, out).has_value());
  EXPECT_ERROR(read_matrix_rows_bf16(checkpoint, "w", 1, 1, out), ErrorCode::corrupt_data,
               {"tensor w: row 1, column 1 is nan"});
  EXPECT_ERROR(read_matrix_rows_bf16(checkpoint, "f", 0, 1, out), ErrorCode::corrupt_data,
               {"tensor f: row 0, column 1 is inf"});
  EXPECT_ERROR(read_vector_f32(checkpoint, "v"), ErrorCode::corrupt_data,
               {"tensor v: element 1 is inf"});
}

TEST_F(ReadTest, DequantisesBlocks) {
  // 130 x 257: ragged in both directions, another scale for each of the 2 x 3 blocks.
  const std::int64_t rows = 130;
  const std::int64_t columns = 257;
  std::vector<std::uint8_t> codes(static_cast<std::size_t>(rows * columns));
  for (std::size_t i = 0; i < codes.size(); ++i) {
    codes[i] = static_cast<std::uint8_t>(i * 37 % 127 + (i % 2) * 128);  // never 0x7f or 0xff
  }
  const std::vector<float> scales{0.5F, 3.0F, 0.1F, 1.7e-3F, -2.0F, 0.0F};
  add("w", "F8_E4M3", {rows, columns}, raw(codes));
  add("w_scale_inv", "F32", {2, 3}, raw(scales));
  const Checkpoint checkpoint = open();
  std::vector<bf16_t> all(codes.size());
  ASSERT_TRUE(read_matrix_rows_bf16(checkpoint, "w", 0, rows, all).has_value());
  for (std::int64_t r = 0; r < rows; ++r) {
    for (std::int64_t c = 0; c < columns; ++c) {
      const auto i = static_cast<std::size_t>(r * columns + c);
      const float scale = scales[static_cast<std::size_t>(r / 128 * 3 + c / 128)];
      ASSERT_EQ(all[i], float_to_bf16(f8_e4m3_to_float(codes[i]) * scale)) << r << ", " << c;
    }
  }
  // The same rows in pieces that begin inside a block.
  for (const std::int64_t begin : {1, 127, 128, 129}) {
    std::vector<bf16_t> part(static_cast<std::size_t>(columns));
    ASSERT_TRUE(read_matrix_rows_bf16(checkpoint, "w", begin, 1, part).has_value());
    EXPECT_TRUE(std::equal(part.begin(), part.end(), all.begin() + begin * columns)) << begin;
  }
}

TEST_F(ReadTest, HandsOutBlocksAsTheyAreStored) {
  constexpr std::size_t kColumns = 257;
  std::vector<std::uint8_t> codes(std::size_t{130} * kColumns);
  for (std::size_t i = 0; i < codes.size(); ++i) {
    codes[i] = static_cast<std::uint8_t>(i * 37 % 127);
  }
  const std::vector<bf16_t> scales{0x3f80, 0x3f00, 0x4000, 0x3e00, 0xc000, 0x3c00};
  add("w", "F8_E4M3", {130, kColumns}, raw(codes));
  add("w_scale_inv", "BF16", {2, 3}, raw(scales));
  add("b", "BF16", {1, 1}, raw(std::vector<bf16_t>{0}));
  const Checkpoint checkpoint = open();
  EXPECT_TRUE(is_fp8_matrix(checkpoint, "w"));
  EXPECT_FALSE(is_fp8_matrix(checkpoint, "b"));
  EXPECT_FALSE(is_fp8_matrix(checkpoint, "none"));
  std::vector<std::uint8_t> got(2 * kColumns);
  std::vector<float> got_scales(3);
  ASSERT_TRUE(read_matrix_rows_fp8(checkpoint, "w", 128, got, got_scales).has_value());
  EXPECT_TRUE(std::equal(got.begin(), got.end(), codes.begin() + 128 * kColumns));
  EXPECT_EQ(got_scales, (std::vector<float>{0.125F, -2.0F, 0.0078125F}));
  const auto read = [&](std::int64_t row) {
    return read_matrix_rows_fp8(checkpoint, "w", row, got, got_scales);
  };
  EXPECT_ERROR(read(1), ErrorCode::invalid_argument, {"tensor w", "from row 1"});
  EXPECT_ERROR(read(256), ErrorCode::invalid_argument, {"from row 256"});
  EXPECT_ERROR(read(-128), ErrorCode::invalid_argument, {"from row -128"});
  got_scales.resize(2);
  EXPECT_ERROR(read(0), ErrorCode::invalid_argument, {"514 codes and 2 scales"});
  got.resize(3 * kColumns);
  got_scales.resize(3);
  EXPECT_ERROR(read(128), ErrorCode::invalid_argument, {"771 codes"});
}

TEST_F(ReadTest, DequantisesAlikeInEveryFloatMode) {
  add("w", "F8_E4M3", {1, 256}, [] {
    std::string codes(256, '\0');
    for (std::size_t i = 0; i < codes.size(); ++i) {
      codes[i] = static_cast<char>(i % 127);
    }
    return codes;
  }());
  add("w_scale_inv", "F32", {1, 2}, raw(std::vector<float>{0x1p-120F, 0x1p-130F}));
  const Checkpoint checkpoint = open();
  std::vector<bf16_t> plain(256);
  std::vector<bf16_t> flushed(256);
  ASSERT_FALSE(flushes_denormals());
  ASSERT_TRUE(read_matrix_rows_bf16(checkpoint, "w", 0, 1, plain).has_value());
  EXPECT_FALSE(flushes_denormals()) << "the mode of the caller was not restored";
  {
    const FlushDenormals mode;
    ASSERT_TRUE(read_matrix_rows_bf16(checkpoint, "w", 0, 1, flushed).has_value());
  }
  EXPECT_EQ(plain, flushed);
  EXPECT_EQ(plain[1], 0) << "2^-9 * 2^-120 is subnormal: zero";
  EXPECT_NE(plain[126], 0);
}

TEST_F(ReadTest, RejectsBrokenFp8) {
  std::vector<bf16_t> out(2);
  add("w", "F8_E4M3", {1, 2}, std::string("\x38\x7f", 2));  // 1.0, NaN
  add("w_scale_inv", "BF16", {1, 1}, raw(std::vector<bf16_t>{0x3f80}));
  EXPECT_ERROR(read_matrix_rows_bf16(open(), "w", 0, 1, out), ErrorCode::corrupt_data,
               {"tensor w: row 0, column 1 is nan"});
  reset();
  add("w", "F8_E4M3", {1, 2}, "\x38\x38");
  add("w_scale_inv", "BF16", {1, 1}, raw(std::vector<bf16_t>{0x7f80}));
  EXPECT_ERROR(read_matrix_rows_bf16(open(), "w", 0, 1, out), ErrorCode::corrupt_data,
               {"tensor w: scale [0, 0] is inf"});
  reset();
  add("w", "F8_E4M3", {1, 2}, "\x38\x38");
  add("w_scale_inv", "BF16", {2, 1}, raw(std::vector<bf16_t>{0x3f80, 0x3f80}));
  EXPECT_ERROR(read_matrix_rows_bf16(open(), "w", 0, 1, out), ErrorCode::corrupt_data,
               {"tensor w_scale_inv: BF16 [2, 1], want BF16 or F32 [1, 1]"});
  reset();
  add("w", "F8_E4M3", {1, 2}, "\x38\x38");
  EXPECT_ERROR(read_matrix_rows_bf16(open(), "w", 0, 1, out), ErrorCode::not_found,
               {"tensor w_scale_inv"});
}

// The dequantised tensor of the golden was made by an independent implementation, in fp32; ours is
// that value rounded once.
TEST_F(ReadTest, AgreesWithTheGolden) {
  const std::filesystem::path golden =
      std::filesystem::path(SLUICE_SOURCE_DIR) / "tests/goldens/fp8_block.safetensors";
  std::filesystem::copy_file(golden, directory_ / "model.safetensors");
  const Result<Checkpoint> checkpoint = Checkpoint::open(directory_.path());
  ASSERT_TRUE(checkpoint.has_value()) << checkpoint.error().message;
  const std::vector<float> want = *read_vector_f32(*checkpoint, "dequantised");
  std::vector<bf16_t> got(want.size());
  ASSERT_TRUE(read_matrix_rows_bf16(*checkpoint, "linear.weight", 0, 136, got).has_value());
  for (std::size_t i = 0; i < want.size(); ++i) {
    ASSERT_EQ(got[i], float_to_bf16(want[i])) << i;
  }
}

}  // namespace
}  // namespace sluice
