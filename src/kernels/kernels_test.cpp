// Every kernel table against the reference, bit for bit, over awkward shapes and hostile values;
// and the reference against plain double arithmetic.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "kernels/kernel_table.h"
#include "kernels/ref/table.h"
#include "kernels/scalar_math.h"
#include "kernels/select.h"
#include "kernels/test_support.h"
#include "platform/float_mode.h"

namespace sluice::kernels {
namespace {

class KernelTest : public testing::TestWithParam<const KernelTable*> {
 protected:
  const KernelTable& fast() const { return *GetParam(); }
  FlushDenormals float_mode_;
};

struct GemmCase {
  std::int64_t m;
  std::int64_t n;
  std::int64_t k;
  std::int64_t slices;
  Values values;
};

TEST_P(KernelTest, GemmEqualsReference) {
  const GemmCase cases[] = {
      {1, 16, 32, 1, Values::normal},    {1, 1, 1, 1, Values::normal},
      {2, 31, 40, 1, Values::normal},    {3, 33, 96, 1, Values::wide},
      {4, 64, 512, 4, Values::normal},   {5, 100, 544, 1, Values::subnormal},
      {17, 96, 1024, 4, Values::wide},   {31, 70, 128, 4, Values::normal},
      {32, 320, 160, 1, Values::normal}, {33, 32, 1152, 4, Values::subnormal},
      {70, 48, 64, 1, Values::huge},     {16, 40, 256, 4, Values::huge},
      {555, 300, 128, 4, Values::wide},  {520, 290, 96, 1, Values::wide},
      {40, 600, 544, 1, Values::wide},   {34, 280, 2176, 4, Values::wide},
  };
  for (const GemmCase& c : cases) {
    for (const WeightFormat format : kFloatFormats) {
      Random random(static_cast<std::uint64_t>(c.m * 1000 + c.k));
      const std::vector<bf16_t> a = random.row_tiles(c.m, c.k, c.values);
      const AlignedBuffer w = pack(format, random.bf16s(c.n * c.k, c.values), c.n, c.k);
      const std::int64_t panels = pad32(c.n) / kPanelColumns;
      const auto run = [&](const KernelTable& table, std::int64_t at_once) {
        std::vector<float> out(static_cast<std::size_t>(c.m * c.n) + 16, kCanary);
        GemmArgs args = gemm_args({c.m, c.n, c.k, c.slices}, a, w, out);
        for (std::int64_t panel = 0; panel < panels; panel += at_once) {
          args.panel_begin = panel;
          args.panel_end = std::min(panels, panel + at_once);
          gemm(table, format, args);
        }
        return out;
      };
      const std::vector<float> expected = run(ref::table(), panels);
      for (const std::int64_t at_once : {std::int64_t{3}, panels}) {  // any split of the columns
        EXPECT_EQ(differences(expected, run(fast(), at_once)), 0)
            << to_string(format) << ' ' << c.m << " x " << c.n << " x " << c.k;
      }
    }
  }
}

TEST_P(KernelTest, RowKernelsEqualReference) {
  for (const std::int64_t size : {1, 4, 15, 16, 17, 32, 48, 64, 100, 128, 255, 256, 1023}) {
    Random random(static_cast<std::uint64_t>(size));
    const std::vector<float> x = random.floats(size, 3.0);
    const std::vector<float> z = random.floats(size, 30.0);
    const std::vector<float> weight = random.floats(size, 1.0);
    const auto check = [&](const char* what, auto&& run) {
      std::vector<bf16_t> expected(static_cast<std::size_t>(pad32(size)) + 32, 0x4242);
      std::vector<bf16_t> got = expected;
      run(ref::table(), expected.data());
      run(fast(), got.data());
      EXPECT_EQ(differences(expected, got), 0) << what << " of " << size;
    };
    check("rms_norm", [&](const KernelTable& t, bf16_t* y) {
      t.rms_norm({.x = x.data(), .weight = weight.data(), .y = y, .size = size, .eps = 1e-6F});
    });
    check("l2_norm", [&](const KernelTable& t, bf16_t* y) {
      t.l2_norm({.x = x.data(), .y = y, .size = size});
    });
    check("gated_norm", [&](const KernelTable& t, bf16_t* y) {
      t.gated_norm({.x = x.data(),
                    .z = z.data(),
                    .weight = weight.data(),
                    .y = y,
                    .size = size,
                    .eps = 1e-6F});
    });
    check("silu_mul",
          [&](const KernelTable& t, bf16_t* y) { t.silu_mul(z.data(), x.data(), y, size); });
    check("sigmoid_mul",
          [&](const KernelTable& t, bf16_t* y) { t.sigmoid_mul(x.data(), z.data(), y, size); });
    check("to_bf16", [&](const KernelTable& t, bf16_t* y) { t.to_bf16(z.data(), y, size); });
    const auto check_f32 = [&](const char* what, auto&& run) {
      std::vector<float> expected = x;
      expected.resize(expected.size() + 16, kCanary);
      std::vector<float> got = expected;
      run(ref::table(), expected.data());
      run(fast(), got.data());
      EXPECT_EQ(differences(expected, got), 0) << what << " of " << size;
    };
    std::vector<bf16_t> narrow(static_cast<std::size_t>(size));
    ref::to_bf16(z.data(), narrow.data(), size);
    check_f32("add", [&](const KernelTable& t, float* y) { t.add(y, z.data(), size); });
    check_f32("to_f32", [&](const KernelTable& t, float* y) { t.to_f32(narrow.data(), y, size); });
  }
}

// Another order of the sum moves a norm by one unit of fp32, which bf16 shows once in some 30,000
// values.
TEST_P(KernelTest, NormsOfManyRowsEqualReference) {
  constexpr std::int64_t kSize = 256;
  Random random(77);
  const std::vector<float> weight = random.floats(kSize, 1.0);
  std::int64_t differing = 0;
  for (int row = 0; row < 4000; ++row) {
    const std::vector<float> x = random.floats(kSize, 3.0);
    std::vector<bf16_t> expected(kSize);
    std::vector<bf16_t> got(kSize);
    RmsNormArgs args{
        .x = x.data(), .weight = weight.data(), .y = expected.data(), .size = kSize, .eps = 1e-6F};
    ref::table().rms_norm(args);
    args.y = got.data();
    fast().rms_norm(args);
    differing += differences(expected, got);
  }
  EXPECT_EQ(differing, 0);
}

TEST_P(KernelTest, SpecialValuesRoundAlike) {
  const float inf = std::numeric_limits<float>::infinity();
  const float nan = std::numeric_limits<float>::quiet_NaN();
  std::vector<float> x = {0.0F,     -0.0F,  inf,     -inf,       nan,         3.4e38F,
                          -3.4e38F, 1e-40F, -1e-40F, 1.0078125F, 1.01171875F, 88.0F,
                          88.1F,    -87.0F, -87.01F, -200.0F};
  std::vector<float> one(x.size(), 1.0F);
  const auto size = static_cast<std::int64_t>(x.size());
  std::vector<bf16_t> expected(x.size());
  std::vector<bf16_t> got(x.size());
  ref::to_bf16(x.data(), expected.data(), size);
  fast().to_bf16(x.data(), got.data(), size);
  EXPECT_EQ(expected, got);
  ref::silu_mul(x.data(), one.data(), expected.data(), size);
  fast().silu_mul(x.data(), one.data(), got.data(), size);
  for (std::size_t i = 0; i < x.size(); ++i) {
    const bool both_nan =
        std::isnan(bf16_to_float(expected[i])) && std::isnan(bf16_to_float(got[i]));
    EXPECT_TRUE(both_nan || expected[i] == got[i]) << "silu of " << x[i];
  }
}

TEST_P(KernelTest, NormRopeEqualsReference) {
  struct Case {
    std::int64_t head_dim;
    std::int64_t half;
  };
  for (const Case& c : {Case{256, 32}, Case{32, 4}, Case{48, 6}, Case{128, 64}, Case{16, 1}}) {
    Random random(static_cast<std::uint64_t>(c.head_dim));
    const std::vector<float> x = random.floats(c.head_dim, 2.0);
    const std::vector<float> weight = random.floats(c.head_dim, 1.0);
    const std::vector<float> cos = random.floats(c.half, 1.0);
    const std::vector<float> sin = random.floats(c.half, 1.0);
    std::vector<bf16_t> expected(static_cast<std::size_t>(pad32(c.head_dim)) + 16, 7);
    std::vector<bf16_t> got = expected;
    NormRopeArgs args{.x = x.data(),
                      .weight = weight.data(),
                      .cos = cos.data(),
                      .sin = sin.data(),
                      .y = expected.data(),
                      .head_dim = c.head_dim,
                      .half = c.half,
                      .eps = 1e-6F};
    ref::norm_rope(args);
    args.y = got.data();
    fast().norm_rope(args);
    EXPECT_EQ(differences(expected, got), 0) << c.head_dim;
  }
}

TEST_P(KernelTest, ConvolutionEqualsReferenceAndAnySplit) {
  for (const std::int64_t channels : {1, 16, 40, 96}) {
    for (const std::int64_t rows : {1, 2, 3, 4, 9}) {
      Random random(static_cast<std::uint64_t>(channels * 100 + rows));
      const std::vector<bf16_t> u = random.bf16s((rows + 3) * channels, Values::normal);
      const std::vector<float> weight = random.floats(4 * channels, 1.0);
      std::vector<float> expected(static_cast<std::size_t>(rows * channels));
      std::vector<float> got = expected;
      ConvArgs args{.u = u.data() + 3 * channels,
                    .u_stride = channels,
                    .history = u.data(),
                    .history_stride = channels,
                    .weight = weight.data(),
                    .weight_stride = channels,
                    .out = expected.data(),
                    .out_stride = channels,
                    .rows = rows,
                    .channels = channels};
      ref::conv_silu(args);
      for (std::int64_t row = 0; row < rows; ++row) {  // row by row, with the history sliding
        args.u = u.data() + (3 + row) * channels;
        args.history = u.data() + row * channels;
        args.out = got.data() + row * channels;
        args.rows = 1;
        fast().conv_silu(args);
      }
      EXPECT_EQ(differences(expected, got), 0) << channels << " x " << rows;
    }
  }
}

TEST_P(KernelTest, AttentionEqualsReference) {
  for (const std::int64_t head_dim : {256, 32, 48}) {
    Random random(static_cast<std::uint64_t>(head_dim));
    AttentionProblem problem(head_dim, 2200, random);
    for (const std::int64_t last : {1, 2, 63, 64, 65, 128, 1023, 1024, 1025, 1100, 2049, 2200}) {
      for (const std::int64_t rows : {1, 3, 16, 17, 40, 128}) {
        if (rows > 16 && last != 65 && last != 1025) {
          continue;  // the reference takes long
        }
        const AttentionProblem::Query query = problem.query(last, rows, random);
        EXPECT_EQ(differences(problem.run(ref::table(), query), problem.run(fast(), query)), 0)
            << "head_dim " << head_dim << ", " << last << " keys, " << rows << " rows";
      }
    }
  }
}

TEST_P(KernelTest, AttentionRowsDoNotSeeEachOther) {
  Random random(5);
  AttentionProblem problem(64, 1500, random);
  const AttentionProblem::Query query = problem.query(1100, 16, random);
  const std::vector<float> together = problem.run(fast(), query);
  for (std::int64_t row = 0; row < 16; ++row) {
    const std::vector<float> alone = problem.run(fast(), query.only(row, 64));
    EXPECT_EQ(std::memcmp(alone.data(), together.data() + row * 64, 64 * sizeof(float)), 0) << row;
  }
}

TEST_P(KernelTest, DeltaRuleEqualsReferenceForAnyGrouping) {
  for (const DeltaInputs inputs : {DeltaInputs::realistic, DeltaInputs::no_decay,
                                   DeltaInputs::same_key, DeltaInputs::hard_resets}) {
    DeltaProblem problem(128, 128, 150, inputs);
    const DeltaProblem::Outcome expected = problem.run(ref::table(), {150});
    for (const std::vector<std::int64_t>& grouping :
         {std::vector<std::int64_t>{150}, {1}, {7}, {32}, {33}, {64}, {17, 15, 32, 1}, {2, 31}}) {
      const DeltaProblem::Outcome got = problem.run(fast(), grouping);
      EXPECT_EQ(differences(expected.out, got.out), 0) << grouping[0];
      EXPECT_EQ(differences(expected.state, got.state), 0) << grouping[0];
    }
  }
  for (const std::int64_t dim : {16, 48, 256}) {  // padded heads
    DeltaProblem problem(dim, dim == 16 ? 48 : 16, 70, DeltaInputs::realistic);
    EXPECT_EQ(differences(problem.run(ref::table(), {70}).out, problem.run(fast(), {3}).out), 0);
  }
}

std::string table_name(const testing::TestParamInfo<const KernelTable*>& test) {
  return test.param->name;
}

INSTANTIATE_TEST_SUITE_P(Tables, KernelTest,
                         testing::ValuesIn(supported_tables(detect_cpu_features())), table_name);

// ---- the reference against double arithmetic

TEST(ReferenceTest, GemmIsWithinTheRoundingBound) {
  const FlushDenormals float_mode;
  constexpr std::int64_t kK = 1024;
  Random random(3);
  const std::vector<bf16_t> a = random.bf16s(kK, Values::normal);
  const std::vector<bf16_t> w = random.bf16s(kK, Values::normal);
  const AlignedBuffer packed = pack(WeightFormat::bf16, w, 1, kK);
  std::vector<bf16_t> tiles(static_cast<std::size_t>(row_tiles_elements(1, kK)), 0);
  tile_rows(a.data(), 1, kK / kStepK, tiles.data());
  for (const std::int64_t slices : {1, 4}) {
    float got = 0.0F;
    ref::gemm_bf16({.a = tiles.data(),
                    .w = packed.data(),
                    .out = &got,
                    .out_stride = 1,
                    .m = 1,
                    .n = 1,
                    .k_steps = kK / 32,
                    .k_slices = slices,
                    .panel_begin = 0,
                    .panel_end = 1});
    double exact = 0.0;
    double magnitude = 0.0;
    for (std::size_t i = 0; i < kK; ++i) {
      const double product =
          static_cast<double>(bf16_to_float(a[i])) * static_cast<double>(bf16_to_float(w[i]));
      exact += product;
      magnitude += std::fabs(product);
    }
    // 16 chained additions, one pair, 32 steps: at most 50 roundings of fp32.
    EXPECT_LT(std::fabs(static_cast<double>(got) - exact), 50 * 0x1p-24 * magnitude);
  }
}

TEST(ReferenceTest, AttentionMatchesDoubleSoftmax) {
  const FlushDenormals float_mode;
  Random random(9);
  AttentionProblem problem(64, 1500, random);
  const AttentionProblem::Query query = problem.query(1400, 2, random);
  const std::vector<float> got = problem.run(ref::table(), query);
  const std::vector<double> exact = problem.exact(query);
  for (std::size_t i = 0; i < got.size(); ++i) {
    // Weights are rounded to bf16 (2^-9 each, signs vary); values are about 1.
    EXPECT_NEAR(static_cast<double>(got[i]), exact[i], 0x1p-9);
  }
}

TEST(ReferenceTest, DeltaRuleMatchesTheRecurrence) {
  const FlushDenormals float_mode;
  for (const DeltaInputs inputs : {DeltaInputs::realistic, DeltaInputs::no_decay,
                                   DeltaInputs::same_key, DeltaInputs::hard_resets}) {
    DeltaProblem problem(128, 128, 200, inputs);
    const std::vector<float> got = problem.run(ref::table(), {200}).out;
    const std::vector<double> exact = problem.exact();
    double error = 0.0;
    double norm = 0.0;
    for (std::size_t i = 0; i < got.size(); ++i) {
      error += std::pow(static_cast<double>(got[i]) - exact[i], 2);
      norm += exact[i] * exact[i];
    }
    EXPECT_LT(std::sqrt(error / norm), 3e-5) << "inputs " << static_cast<int>(inputs);
  }
}

TEST(ScalarMathTest, StaysCloseToTheTruth) {
  for (float x = -86.9F; x < 88.0F; x += 0.0137F) {
    const double exact = std::exp(static_cast<double>(x));
    EXPECT_NEAR(static_cast<double>(exp_f32(x)) / exact, 1.0, 0x1p-23) << x;
  }
  EXPECT_EQ(exp_f32(0.0F), 1.0F);
  EXPECT_EQ(exp_f32(-100.0F), 0.0F);
  EXPECT_TRUE(std::isnan(exp_f32(std::numeric_limits<float>::quiet_NaN())));
  for (float x = 1e-30F; x < 1e30F; x *= 1.0371F) {
    const double exact = std::log(static_cast<double>(x));
    EXPECT_NEAR(static_cast<double>(log_f32(x)), exact, std::fabs(exact) * 0x1p-23 + 1e-7) << x;
  }
  for (float x = -40.0F; x < 40.0F; x += 0.137F) {
    const double exact = std::log1p(std::exp(static_cast<double>(x)));
    EXPECT_NEAR(static_cast<double>(softplus_f32(x)) / exact, 1.0, 0x1p-23) << x;
  }
  for (double angle = -1e4; angle < 1.9e6; angle += 1337.1337) {
    EXPECT_NEAR(static_cast<double>(sincos_f64(angle).sin), std::sin(angle), 0x1p-24) << angle;
    EXPECT_NEAR(static_cast<double>(sincos_f64(angle).cos), std::cos(angle), 0x1p-24) << angle;
  }
  for (int i = 0; i < 32; ++i) {
    EXPECT_FLOAT_EQ(power_f64(1e7, -i / 32.0), static_cast<float>(std::pow(1e7, -i / 32.0)));
  }
}

// ---- choosing a table

TEST(SelectTest, ForcedTableRunsOrIsRefused) {
  CpuFeatures none;
  none.vendor_model = "a small CPU";
  EXPECT_STREQ((*select_kernels(none, ""))->name, "ref");
  const auto refused = select_kernels(none, "avx512");
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().code, ErrorCode::unsupported);
  EXPECT_NE(refused.error().message.find("avx512"), std::string::npos);
  EXPECT_NE(refused.error().message.find("a small CPU"), std::string::npos);
  EXPECT_EQ(select_kernels(none, "sse9").error().code, ErrorCode::invalid_argument);
  for (const KernelTable* table : supported_tables(detect_cpu_features())) {
    EXPECT_EQ(*select_kernels(detect_cpu_features(), table->name), table);
  }
}

}  // namespace
}  // namespace sluice::kernels
