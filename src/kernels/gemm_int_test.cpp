// Integer products: every table against the reference bit for bit, the reference against sums in
// 64 bits, and what packing does to weights.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "kernels/avx512/table.h"
#include "kernels/kernel_table.h"
#include "kernels/ref/table.h"
#include "kernels/select.h"
#include "kernels/test_support.h"
#include "platform/float_mode.h"

namespace sluice::kernels {
namespace {

constexpr WeightFormat kIntFormats[] = {WeightFormat::int8, WeightFormat::int4};

// Rows of activations as integer products read them.
struct QuantisedRows {
  QuantisedRows(const KernelTable& table, const std::vector<bf16_t>& x, std::int64_t rows,
                std::int64_t k)
      : values(static_cast<std::size_t>(int_rows_bytes(rows, k)), 99),
        scales(static_cast<std::size_t>(rows)) {
    for (std::int64_t row = 0; row < rows; ++row) {
      table.quantise_row({.x = x.data() + row * pad32(k),
                          .y = values.data() + int_row_offset(row, int_steps(k)),
                          .scale = &scales[static_cast<std::size_t>(row)],
                          .size = k});
    }
  }
  std::int64_t at(std::int64_t row, std::int64_t i, std::int64_t k) const {
    return values[static_cast<std::size_t>(int_row_offset(row, int_steps(k)) +
                                           i / kIntStepK * kIntTileBytes + i % kIntStepK)];
  }

  std::vector<std::int8_t> values;
  std::vector<float> scales;
};

std::vector<bf16_t> padded_rows(Random& random, std::int64_t rows, std::int64_t k, Values values) {
  std::vector<bf16_t> x(static_cast<std::size_t>(rows * pad32(k)), 0);
  for (std::int64_t row = 0; row < rows; ++row) {
    random.fill(x.data() + row * pad32(k), k, values);
  }
  return x;
}

struct Product {
  std::int64_t m;
  std::int64_t n;
  std::int64_t k;
  QuantisedRows rows;
  AlignedBuffer weights;
  WeightFormat format;

  Product(WeightFormat of, std::int64_t m_, std::int64_t n_, std::int64_t k_, Values values)
      : m(m_),
        n(n_),
        k(k_),
        rows(ref::table(), inputs(m_, k_, values), m_, k_),
        weights(pack(of, Random(static_cast<std::uint64_t>(n_)).bf16s(n_ * k_, values), n_, k_)),
        format(of) {}

  static std::vector<bf16_t> inputs(std::int64_t m, std::int64_t k, Values values) {
    Random random(static_cast<std::uint64_t>(m * 1000 + k));
    return padded_rows(random, m, k, values);
  }

  // `at_once` panels a call.
  std::vector<float> run(const KernelTable& table, std::int64_t at_once) const {
    std::vector<float> out(static_cast<std::size_t>(m * n) + 16, kCanary);
    const std::int64_t panels = pad32(n) / kPanelColumns;
    for (std::int64_t panel = 0; panel < panels; panel += at_once) {
      const IntGemmArgs args{.a = rows.values.data(),
                             .a_scale = rows.scales.data(),
                             .w = weights.data(),
                             .out = out.data(),
                             .out_stride = n,
                             .m = m,
                             .n = n,
                             .k_steps = int_steps(k),
                             .panel_begin = panel,
                             .panel_end = std::min(panels, panel + at_once)};
      (format == WeightFormat::int8 ? table.gemm_int8 : table.gemm_int4)(args);
    }
    return out;
  }
};

class IntKernelTest : public testing::TestWithParam<const KernelTable*> {
 protected:
  FlushDenormals float_mode_;
};

TEST_P(IntKernelTest, GemmEqualsReference) {
  const std::int64_t shapes[][3] = {{1, 16, 64},   {1, 1, 1},      {1, 100, 3000}, {2, 31, 40},
                                    {3, 33, 96},   {4, 64, 512},   {5, 100, 544},  {8, 32, 1024},
                                    {9, 65, 65},   {16, 40, 2048}, {17, 96, 1100}, {31, 70, 128},
                                    {32, 320, 96}, {33, 32, 1152}, {64, 300, 640}, {70, 48, 1090},
                                    {530, 70, 96}, {40, 33, 2112}, {40, 600, 1090}};
  for (const WeightFormat format : kIntFormats) {
    for (const auto& shape : shapes) {
      const Product product(format, shape[0], shape[1], shape[2], Values::normal);
      const std::vector<float> expected = product.run(ref::table(), 1);
      for (const std::int64_t at_once : {std::int64_t{3}, std::int64_t{1} << 20}) {
        EXPECT_EQ(differences(expected, product.run(*GetParam(), at_once)), 0)
            << to_string(format) << ' ' << product.m << " x " << product.n << " x " << product.k;
      }
    }
  }
}

// Rows alone, in pairs, in a crowd: the same bits.
TEST_P(IntKernelTest, RowsDoNotSeeOneAnother) {
  for (const WeightFormat format : kIntFormats) {
    constexpr std::int64_t kK = 320;
    constexpr std::int64_t kN = 64;
    const Product crowd(format, 70, kN, kK, Values::normal);
    const std::vector<float> all = crowd.run(*GetParam(), 2);
    const std::vector<bf16_t> x = Product::inputs(70, kK, Values::normal);
    for (const std::int64_t row : {0, 1, 15, 16, 33, 69}) {
      Product alone(format, 1, kN, kK, Values::normal);
      alone.rows =
          QuantisedRows(*GetParam(), {x.begin() + row * kK, x.begin() + (row + 1) * kK}, 1, kK);
      const std::vector<float> out = alone.run(*GetParam(), 2);
      EXPECT_TRUE(std::equal(out.begin(), out.begin() + kN, all.begin() + row * kN))
          << to_string(format) << " row " << row;
    }
  }
}

// Every product at its largest: no step of a sum may saturate.
TEST_P(IntKernelTest, LargestSumsAreExact) {
  constexpr std::int64_t kK = 4096;
  for (const WeightFormat format : kIntFormats) {
    for (const float sign : {1.0F, -1.0F}) {
      const std::vector<bf16_t> ones(static_cast<std::size_t>(kK), float_to_bf16(1.0F));
      const std::vector<bf16_t> w(static_cast<std::size_t>(32 * kK), float_to_bf16(sign));
      Product product(format, 1, 32, kK, Values::normal);
      product.rows = QuantisedRows(*GetParam(), ones, 1, kK);
      product.weights = pack(format, w, 32, kK);
      const std::vector<float> out = product.run(*GetParam(), 1);
      for (std::size_t i = 0; i < 32; ++i) {
        EXPECT_NEAR(out[i], sign * kK, kK * 1e-6) << to_string(format);
      }
    }
  }
}

TEST_P(IntKernelTest, QuantisedRowsEqualReference) {
  for (const std::int64_t size : {1, 15, 16, 31, 32, 33, 63, 64, 65, 96, 127, 500, 1024}) {
    for (const Values values : {Values::normal, Values::wide, Values::subnormal, Values::huge}) {
      Random random(static_cast<std::uint64_t>(size));
      const std::vector<bf16_t> x = padded_rows(random, 3, size, values);
      const QuantisedRows expected(ref::table(), x, 3, size);
      const QuantisedRows got(*GetParam(), x, 3, size);
      EXPECT_EQ(differences(expected.values, got.values), 0) << size;
      EXPECT_EQ(differences(expected.scales, got.scales), 0) << size;
    }
  }
}

TEST_P(IntKernelTest, RowsThatAreNoNumbersGiveNoNumbers) {
  for (const std::uint32_t bits : {0x7f80U, 0xff80U, 0x7fc1U}) {
    std::vector<bf16_t> x(64, float_to_bf16(2.0F));
    x[37] = static_cast<bf16_t>(bits);
    const QuantisedRows rows(*GetParam(), x, 1, 64);
    EXPECT_TRUE(std::isnan(rows.scales[0]));
    EXPECT_EQ(std::count(rows.values.begin(), rows.values.begin() + 64, 0), 64);
  }
  const QuantisedRows zero(*GetParam(), std::vector<bf16_t>(64, 0), 1, 64);
  EXPECT_EQ(zero.scales[0], 0.0F);
  const QuantisedRows tiny(*GetParam(), std::vector<bf16_t>(64, float_to_bf16(0x1p-101F)), 1, 64);
  EXPECT_EQ(tiny.scales[0], 0.0F);
}

std::vector<const KernelTable*> tables() {
  const CpuFeatures cpu = detect_cpu_features();
  std::vector<const KernelTable*> all = supported_tables(cpu);
  if (cpu.avx512_vnni) {
    all.push_back(avx512::table());  // what CPUs without VNNI run
  }
  return all;
}

INSTANTIATE_TEST_SUITE_P(Tables, IntKernelTest, testing::ValuesIn(tables()),
                         [](const testing::TestParamInfo<const KernelTable*>& tested) {
                           return std::string(tested.param->name) + std::to_string(tested.index);
                         });

// ---- the reference and the packers

TEST(IntReferenceTest, GemmIsTheSumOfWhatIsPacked) {
  const FlushDenormals float_mode;
  for (const WeightFormat format : kIntFormats) {
    const Product product(format, 3, 40, 200, Values::normal);
    const std::vector<float> out = product.run(ref::table(), 2);
    std::vector<float> w(static_cast<std::size_t>(product.k));
    for (std::int64_t n = 0; n < product.n; ++n) {
      unpack_weight_row(format, product.weights.data(), n, product.k, w.data());
      for (std::int64_t m = 0; m < product.m; ++m) {
        double sum = 0.0;
        for (std::int64_t i = 0; i < product.k; ++i) {
          sum += static_cast<double>(w[static_cast<std::size_t>(i)]) *
                 static_cast<double>(product.rows.at(m, i, product.k));
        }
        const double expected =
            sum * static_cast<double>(product.rows.scales[static_cast<std::size_t>(m)]);
        EXPECT_NEAR(out[static_cast<std::size_t>(m * product.n + n)], expected, 1e-5)
            << to_string(format) << ' ' << m << ' ' << n;
      }
    }
  }
}

TEST(IntReferenceTest, QuantisedRowsRoundToNearestEven) {
  const FlushDenormals float_mode;
  std::vector<bf16_t> x(32, 0);
  const float values[] = {127.0F, 0.5F, 1.5F, 2.5F, -0.5F, -1.5F, -2.5F, 3.25F, -127.0F};
  const int expected[] = {127, 0, 2, 2, 0, -2, -2, 3, -127};
  for (std::size_t i = 0; i < std::size(values); ++i) {
    x[i] = float_to_bf16(values[i]);
  }
  const QuantisedRows rows(ref::table(), x, 1, 32);
  EXPECT_EQ(rows.scales[0], 1.0F);
  for (std::size_t i = 0; i < std::size(values); ++i) {
    EXPECT_EQ(rows.values[i], expected[i]) << values[i];
  }
}

double relative_error(WeightFormat format, const std::vector<bf16_t>& w, std::int64_t n,
                      std::int64_t k) {
  const AlignedBuffer packed = pack(format, w, n, k);
  std::vector<float> row(static_cast<std::size_t>(k));
  double error = 0.0;
  double norm = 0.0;
  for (std::int64_t r = 0; r < n; ++r) {
    unpack_weight_row(format, packed.data(), r, k, row.data());
    for (std::int64_t i = 0; i < k; ++i) {
      const auto exact = static_cast<double>(bf16_to_float(w[static_cast<std::size_t>(r * k + i)]));
      error += std::pow(static_cast<double>(row[static_cast<std::size_t>(i)]) - exact, 2);
      norm += exact * exact;
    }
  }
  return std::sqrt(error / norm);
}

// Normal weights. fp8: half a step is 1/16 to 1/32 of a value, its error 1/sqrt(3) of that. int8:
// the largest of 1,024 is about 3.2 deviations, a step 1/40 of one, its error 1/sqrt(12) of that.
// int4 at 4.25 bits: a little above the 0.076 of groups of 32 with exact scales.
TEST(PackTest, ErrorsAreWhatTheBitsAllow) {
  Random random(5);
  const std::vector<bf16_t> w = random.bf16s(std::int64_t{64} * 1024, Values::normal);
  EXPECT_EQ(relative_error(WeightFormat::bf16, w, 64, 1024), 0.0);
  EXPECT_LT(relative_error(WeightFormat::fp8, w, 64, 1024), 0.027);
  EXPECT_LT(relative_error(WeightFormat::int8, w, 64, 1024), 0.009);
  EXPECT_LT(relative_error(WeightFormat::int4, w, 64, 1024), 0.085);
}

TEST(PackTest, WhatFitsIsExact) {
  for (const WeightFormat format : kIntFormats) {
    constexpr std::int64_t kK = 70;
    std::vector<bf16_t> w(static_cast<std::size_t>(2 * kK), 0);
    for (std::int64_t i = 0; i < kK; ++i) {
      w[static_cast<std::size_t>(i)] = float_to_bf16(static_cast<float>(i % 16 - 7) * 15.0F);
    }
    const AlignedBuffer packed = pack(format, w, 2, kK);
    std::vector<float> row(kK);
    unpack_weight_row(format, packed.data(), 0, kK, row.data());
    for (std::int64_t i = 0; i < kK; ++i) {
      EXPECT_NEAR(row[static_cast<std::size_t>(i)], static_cast<float>(i % 16 - 7) * 15.0F,
                  format == WeightFormat::int8 ? 0.5 : 1e-4)
          << to_string(format) << ' ' << i;
    }
    unpack_weight_row(format, packed.data(), 1, kK, row.data());
    EXPECT_EQ(std::count(row.begin(), row.end(), 0.0F), kK) << to_string(format);
  }
}

TEST(PackTest, NamesAreReadBack) {
  for (const WeightFormat format : kWeightFormats) {
    EXPECT_EQ(weight_format_from_name(to_string(format)), format);
  }
  EXPECT_FALSE(weight_format_from_name("int5").has_value());
}

}  // namespace
}  // namespace sluice::kernels
