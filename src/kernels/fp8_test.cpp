// fp8: every code under every scale is the weight that fp8_weight() says, in every table; products
// are those of the bf16 weights; and what packing does to weights, and does not to blocks of FP8.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <span>
#include <string>
#include <vector>

#include "kernels/kernel_table.h"
#include "kernels/ref/table.h"
#include "kernels/select.h"
#include "kernels/test_support.h"
#include "platform/float_mode.h"

namespace sluice::kernels {
namespace {

// A weight [n, k] of blocks.
struct Blocks {
  std::int64_t n;
  std::int64_t k;
  std::vector<std::uint8_t> codes;  // [n][k]
  std::vector<float> scales;        // [blocks of n][blocks of k]

  std::size_t block_of(std::int64_t row, std::int64_t i) const {
    return static_cast<std::size_t>(row / kFp8BlockSize * fp8_blocks(k) + i / kFp8BlockSize);
  }
  // As bf16, row-major.
  std::vector<bf16_t> weights() const {
    std::vector<bf16_t> w;
    for (std::int64_t row = 0; row < n; ++row) {
      for (std::int64_t i = 0; i < k; ++i) {
        w.push_back(
            fp8_weight(codes[static_cast<std::size_t>(row * k + i)], scales[block_of(row, i)]));
      }
    }
    return w;
  }
  AlignedBuffer packed() const {
    AlignedBuffer packed =
        *AlignedBuffer::allocate(static_cast<std::size_t>(packed_bytes(WeightFormat::fp8, n, k)));
    const std::vector<bf16_t> w = weights();
    pack_weight_rows(WeightFormat::fp8,
                     {.values = w.data(), .codes = codes.data(), .scales = scales.data()}, 0, n, k,
                     packed.data());
    return packed;
  }
};

constexpr float kUsualScales[] = {1.0F, 0.0123F, -3.3e-3F, 0x1.234567p-7F, 0.0F, 4.0F, 0x1p-20F};
// At and beyond the ends of what kernels have a short way for, subnormal, zero.
constexpr float kHostileScales[] = {1.0F,     0x1.234567p-7F, 0x1p-110F,  0x1.fp-111F, 0x1p118F,
                                    -3.3e-3F, 0x1p-119F,      0x1p-126F,  0x1p-130F,   0.0F,
                                    -0.0F,    0x1.1p118F,     0x1.1p119F, -0x1p-116F,  0.0123F};

// All codes but NaN in turn, another scale in each block.
Blocks make_blocks(std::int64_t n, std::int64_t k, std::span<const float> scales) {
  Blocks blocks{.n = n, .k = k, .codes = {}, .scales = {}};
  for (std::int64_t i = 0; i < n * k; ++i) {
    const auto code = static_cast<std::uint8_t>((i * 37 + i / 251) % 256);
    blocks.codes.push_back((code & 0x7fU) == 0x7fU ? 0x80 : code);
  }
  for (std::int64_t i = 0; i < fp8_blocks(n) * fp8_blocks(k); ++i) {
    blocks.scales.push_back(scales[static_cast<std::size_t>(i) % scales.size()]);
  }
  return blocks;
}

std::vector<float> product(const KernelTable& table, WeightFormat format, const AlignedBuffer& w,
                           const std::vector<bf16_t>& a, const GemmSize& size) {
  std::vector<float> out(static_cast<std::size_t>(size.m * size.n), kCanary);
  gemm(table, format, gemm_args(size, a, w, out));
  return out;
}

class Fp8Test : public testing::TestWithParam<const KernelTable*> {
 protected:
  FlushDenormals float_mode_;
};

// Row i of the activations is 1 at k = i: products are the weights themselves.
TEST_P(Fp8Test, EveryCodeIsItsWeight) {
  constexpr std::int64_t kN = 32;
  constexpr std::int64_t kK = 15 * kFp8BlockSize;
  const Blocks blocks = make_blocks(kN, kK, kHostileScales);
  const std::vector<bf16_t> w = blocks.weights();
  const AlignedBuffer packed = blocks.packed();
  constexpr std::int64_t kRows = 64;
  for (std::int64_t begin = 0; begin < kK; begin += kRows) {
    std::vector<bf16_t> rows(static_cast<std::size_t>(kRows * kK), 0);
    for (std::int64_t i = 0; i < kRows; ++i) {
      rows[static_cast<std::size_t>(i * kK + begin + i)] = float_to_bf16(1.0F);
    }
    std::vector<bf16_t> a(rows.size());
    for (std::int64_t row = 0; row < kRows; row += kRowsOfTile) {
      tile_rows(rows.data() + row * kK, kRowsOfTile, kK / kStepK, a.data() + row * kK);
    }
    for (const std::int64_t m : {kRows, std::int64_t{1}}) {
      const std::vector<float> out =
          product(*GetParam(), WeightFormat::fp8, packed, a, {m, kN, kK, 1});
      for (std::int64_t i = 0; i < m; ++i) {
        for (std::int64_t n = 0; n < kN; ++n) {
          const float want = bf16_to_float(w[static_cast<std::size_t>(n * kK + begin + i)]);
          ASSERT_EQ(out[static_cast<std::size_t>(i * kN + n)], want)
              << "k " << begin + i << ", column " << n << ", code "
              << int{blocks.codes[static_cast<std::size_t>(n * kK + begin + i)]} << ", scale "
              << blocks.scales[blocks.block_of(n, begin + i)];
        }
      }
    }
  }
}

TEST_P(Fp8Test, ProductsAreThoseOfTheBf16Weights) {
  for (const GemmSize& size :
       {GemmSize{1, 300, 544, 1}, GemmSize{3, 40, 1152, 4}, GemmSize{17, 290, 200, 1},
        GemmSize{33, 160, 2176, 4}, GemmSize{70, 33, 96, 1}, GemmSize{520, 300, 640, 4}}) {
    Random random(static_cast<std::uint64_t>(size.m));
    const Blocks blocks = make_blocks(size.n, size.k, kUsualScales);
    const AlignedBuffer wide = pack(WeightFormat::bf16, blocks.weights(), size.n, size.k);
    const std::vector<bf16_t> a = random.row_tiles(size.m, size.k, Values::normal);
    EXPECT_EQ(differences(product(ref::table(), WeightFormat::bf16, wide, a, size),
                          product(*GetParam(), WeightFormat::fp8, blocks.packed(), a, size)),
              0)
        << size.m << " x " << size.n << " x " << size.k;
  }
}

INSTANTIATE_TEST_SUITE_P(Tables, Fp8Test,
                         testing::ValuesIn(supported_tables(detect_cpu_features())),
                         [](const auto& table) { return std::string(table.param->name); });

// ---- packing

TEST(Fp8PackTest, BlocksStayAsTheyAre) {
  const Blocks blocks = make_blocks(300, 200, kHostileScales);
  const AlignedBuffer packed = blocks.packed();
  std::vector<bf16_t> w;
  {
    const FlushDenormals float_mode;
    w = blocks.weights();
  }
  std::vector<float> row(200);
  for (std::int64_t n = 0; n < blocks.n; ++n) {
    unpack_weight_row(WeightFormat::fp8, packed.data(), n, blocks.k, row.data());
    for (std::size_t i = 0; i < row.size(); ++i) {
      ASSERT_EQ(row[i], bf16_to_float(w[static_cast<std::size_t>(n) * row.size() + i])) << n;
    }
  }
}

// The largest weight of a block is exact up to the rounding of its product; no other is farther
// from its code's weight than half a step.
TEST(Fp8PackTest, WeightsAreRoundedToTheirBlock) {
  constexpr std::int64_t kN = 200;
  constexpr std::int64_t kK = 300;
  Random random(3);
  std::vector<bf16_t> w = random.bf16s(kN * kK, Values::normal);
  for (std::int64_t n = 128; n < kN; ++n) {  // blocks of another size
    for (std::int64_t i = 128; i < kK; ++i) {
      bf16_t& value = w[static_cast<std::size_t>(n * kK + i)];
      value = float_to_bf16(bf16_to_float(value) * 0x1p-90F);
    }
  }
  const AlignedBuffer packed = pack(WeightFormat::fp8, w, kN, kK);
  std::vector<float> row(kK);
  for (std::int64_t n = 0; n < kN; ++n) {
    unpack_weight_row(WeightFormat::fp8, packed.data(), n, kK, row.data());
    for (std::int64_t i = 0; i < kK; ++i) {
      const float exact = bf16_to_float(w[static_cast<std::size_t>(n * kK + i)]);
      const float unit = n >= 128 && i >= 128 ? 0x1p-90F : 1.0F;
      ASSERT_NEAR(row[static_cast<std::size_t>(i)], exact, std::abs(exact) / 15.0F + unit * 1e-4F)
          << n << ", " << i;
    }
  }
}

TEST(Fp8PackTest, WeightsOfCodesAreExact) {
  std::vector<bf16_t> w(256, 0);
  for (std::size_t code = 0; code < 256; ++code) {
    if ((code & 0x7fU) != 0x7fU) {
      w[code] = float_to_bf16(kF8E4m3Values.of[code] * 0x1p-5F);
    }
  }
  w[127] = w[126];  // both blocks have +-448
  const AlignedBuffer packed = pack(WeightFormat::fp8, w, 1, 256);
  std::vector<float> row(256);
  unpack_weight_row(WeightFormat::fp8, packed.data(), 0, 256, row.data());
  for (std::size_t i = 0; i < row.size(); ++i) {
    EXPECT_EQ(row[i], bf16_to_float(w[i])) << i;
  }
}

TEST(Fp8PackTest, BlocksOfNothingAndOfHugeWeights) {
  const bf16_t largest = 0x7f7f;
  std::vector<bf16_t> w(384, 0);
  std::fill_n(w.begin() + 128, 128, float_to_bf16(-0x1p-101F));
  w[256] = largest;
  w[257] = float_to_bf16(-1e38F);
  const AlignedBuffer packed = pack(WeightFormat::fp8, w, 1, 384);
  EXPECT_EQ(fp8_scale(packed.data(), 0), 1.0F);
  EXPECT_EQ(fp8_scale(packed.data(), 4), 1.0F);
  std::vector<float> row(384);
  unpack_weight_row(WeightFormat::fp8, packed.data(), 0, 384, row.data());
  EXPECT_EQ(std::count(row.begin(), row.begin() + 256, 0.0F), 256);
  EXPECT_EQ(row[256], bf16_to_float(largest));
  EXPECT_NEAR(row[257], -1e38F, 1e38F / 16.0F);
  EXPECT_EQ(row[258], 0.0F);
}

}  // namespace
}  // namespace sluice::kernels
