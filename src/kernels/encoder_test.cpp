// The vision encoder's entries of every kernel table against the reference, bit for bit; and the
// reference against plain double arithmetic.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <vector>

#include "kernels/kernel_table.h"
#include "kernels/ref/table.h"
#include "kernels/scalar_math.h"
#include "kernels/select.h"
#include "kernels/test_full_attention.h"
#include "kernels/test_support.h"
#include "platform/float_mode.h"

namespace sluice::kernels {
namespace {

class EncoderKernelTest : public testing::TestWithParam<const KernelTable*> {
 protected:
  const KernelTable& fast() const { return *GetParam(); }
  FlushDenormals float_mode_;
};

TEST_P(EncoderKernelTest, FullAttentionEqualsReference) {
  struct Case {
    std::int64_t head_dim;
    std::int64_t keys;
    std::int64_t rows;
    double spread;  // of the keys: 30 makes one weight of many nearly 1
  };
  const Case cases[] = {{4, 4, 4, 1.0},      {16, 1, 1, 1.0},     {36, 65, 33, 3.0},
                        {64, 64, 31, 1.0},   {64, 300, 64, 30.0}, {72, 1023, 16, 1.0},
                        {72, 1024, 40, 3.0}, {72, 2100, 7, 1.0},  {72, 100, 530, 1.0},
                        {80, 1100, 17, 8.0}, {128, 1500, 9, 1.0}, {100, 127, 257, 0.1}};
  for (const Case& c : cases) {
    const FullAttentionProblem problem(c.head_dim, c.keys, c.rows, c.spread);
    EXPECT_EQ(differences(problem.run(ref::table()), problem.run(fast())), 0)
        << "head_dim " << c.head_dim << ", " << c.keys << " keys, " << c.rows << " rows";
  }
}

TEST_P(EncoderKernelTest, FullAttentionRowsDoNotSeeEachOther) {
  const FullAttentionProblem problem(72, 1200, 50, 2.0);
  const std::vector<bf16_t> together = problem.run(fast());
  for (const std::int64_t row : {0, 1, 15, 16, 31, 32, 49}) {
    const std::vector<bf16_t> alone = problem.run(fast().full_attention, row, row + 1);
    EXPECT_EQ(std::memcmp(alone.data(), together.data() + row * 75, 75 * sizeof(bf16_t)), 0) << row;
  }
}

TEST_P(EncoderKernelTest, RowKernelsEqualReference) {
  for (const std::int64_t size : {4, 15, 16, 17, 72, 100, 256, 1152, 1155}) {
    Random random(static_cast<std::uint64_t>(size));
    const std::vector<float> x = random.floats(size, 3.0);
    const std::vector<float> weight = random.floats(size, 1.0);
    const std::vector<float> bias = random.floats(size, 2.0);
    const auto check = [&](const char* what, auto&& run) {
      std::vector<bf16_t> expected(static_cast<std::size_t>(pad32(size)) + 64, 0x4242);
      std::vector<bf16_t> got = expected;
      run(ref::table(), expected.data());
      run(fast(), got.data());
      EXPECT_EQ(differences(expected, got), 0) << what << " of " << size;
    };
    for (const std::int64_t y_size : {size, pad32(size), pad32(size) + 33}) {
      check("layer_norm", [&](const KernelTable& t, bf16_t* y) {
        t.layer_norm({.x = x.data(),
                      .weight = weight.data(),
                      .bias = bias.data(),
                      .y = y,
                      .size = size,
                      .y_size = y_size,
                      .eps = 1e-6F});
      });
    }
    if (size % 2 == 0) {
      check("bias_rope", [&](const KernelTable& t, bf16_t* y) {
        t.bias_rope({.x = x.data(),
                     .bias = bias.data(),
                     .cos = weight.data(),
                     .sin = weight.data() + size / 2,
                     .y = y,
                     .head_dim = size});
      });
    }
    check("bias_gelu",
          [&](const KernelTable& t, bf16_t* y) { t.bias_gelu(x.data(), bias.data(), y, size); });
    check("bias_gelu_tanh", [&](const KernelTable& t, bf16_t* y) {
      t.bias_gelu_tanh(x.data(), bias.data(), y, size);
    });
  }
}

TEST_P(EncoderKernelTest, ResidualKernelsEqualReference) {
  for (const std::int64_t size : {1, 16, 36, 100, 1152}) {
    Random random(static_cast<std::uint64_t>(size));
    const std::vector<float> y = random.floats(size, 300.0);
    const std::vector<float> bias = random.floats(size, 1.0);
    const std::vector<bf16_t> taps = random.bf16s(4 * size, Values::normal);
    std::vector<float> start = random.floats(size, 3.0);
    start.resize(start.size() + 16, kCanary);
    const auto check = [&](const char* what, auto&& run) {
      std::vector<float> expected = start;
      std::vector<float> got = start;
      run(ref::table(), expected.data());
      run(fast(), got.data());
      EXPECT_EQ(differences(expected, got), 0) << what << " of " << size;
    };
    check("add_with_bias",
          [&](const KernelTable& t, float* x) { t.add_with_bias(x, y.data(), bias.data(), size); });
    check("embed_patch", [&](const KernelTable& t, float* x) {
      t.embed_patch({.x = x,
                     .bias = bias.data(),
                     .taps = {taps.data(), taps.data() + size, taps.data() + 2 * size,
                              taps.data() + 3 * size},
                     .weights = {0.3F, 0.2F, 0.1F, 0.4F},
                     .size = size,
                     .scale = 1.0F / 255.0F});
    });
  }
}

// The functions themselves, at bf16's resolution and at every scale, the tails included.
TEST_P(EncoderKernelTest, GeluEqualsReferenceEverywhere) {
  std::vector<float> x;
  for (std::int32_t bits = 0; bits < 0x4280; ++bits) {  // every bf16 up to 64, and its neighbours
    const float value = bf16_to_float(static_cast<bf16_t>(bits));
    for (const float factor : {1.0F, 1.001F, -1.0F, -1.0017F}) {
      x.push_back(value * factor);
    }
  }
  const auto size = static_cast<std::int64_t>(x.size());
  const std::vector<float> none(x.size(), 0.0F);
  std::vector<bf16_t> expected(x.size());
  std::vector<bf16_t> got(x.size());
  ref::bias_gelu(x.data(), none.data(), expected.data(), size);
  fast().bias_gelu(x.data(), none.data(), got.data(), size);
  EXPECT_EQ(differences(expected, got), 0);
  ref::bias_gelu_tanh(x.data(), none.data(), expected.data(), size);
  fast().bias_gelu_tanh(x.data(), none.data(), got.data(), size);
  EXPECT_EQ(differences(expected, got), 0);
}

INSTANTIATE_TEST_SUITE_P(Tables, EncoderKernelTest,
                         testing::ValuesIn(supported_tables(detect_cpu_features())),
                         [](const auto& test) { return test.param->name; });

TEST(EncoderReferenceTest, FullAttentionMatchesDoubleSoftmax) {
  const FlushDenormals float_mode;
  for (const std::int64_t keys : {5, 64, 200, 1500}) {
    const FullAttentionProblem problem(72, keys, 2, 2.0);
    const std::vector<bf16_t> got = problem.run(ref::table());
    for (std::int64_t row = 0; row < 2; ++row) {
      const std::vector<double> exact = problem.exact(row, false);
      const std::vector<double> magnitude = problem.exact(row, true);
      for (std::size_t c = 0; c < exact.size(); ++c) {
        const auto value =
            static_cast<double>(bf16_to_float(got[static_cast<std::size_t>(row) * 75 + c]));
        // Weights and the result are rounded to bf16, 2^-8 at most each.
        EXPECT_NEAR(value, exact[c], 0x1.01p-8 * (magnitude[c] + std::fabs(exact[c])))
            << keys << " keys";
      }
    }
  }
}

TEST(EncoderReferenceTest, LayerNormMatchesDouble) {
  const FlushDenormals float_mode;
  Random random(4);
  constexpr std::size_t kSize = 1152;
  std::vector<float> x = random.floats(kSize, 1.0);
  for (float& value : x) {
    value += 50.0F;  // a mean that is large beside the deviation
  }
  const std::vector<float> weight = random.floats(kSize, 1.0);
  const std::vector<float> bias = random.floats(kSize, 1.0);
  std::vector<bf16_t> y(kSize);
  ref::layer_norm({.x = x.data(),
                   .weight = weight.data(),
                   .bias = bias.data(),
                   .y = y.data(),
                   .size = kSize,
                   .y_size = kSize,
                   .eps = 1e-6F});
  double mean = 0.0;
  for (const float value : x) {
    mean += static_cast<double>(value) / kSize;
  }
  double variance = 0.0;
  for (const float value : x) {
    variance += std::pow(static_cast<double>(value) - mean, 2) / kSize;
  }
  for (std::size_t i = 0; i < kSize; ++i) {
    const double normed = (static_cast<double>(x[i]) - mean) / std::sqrt(variance + 1e-6);
    const double exact = normed * static_cast<double>(weight[i]) + static_cast<double>(bias[i]);
    EXPECT_NEAR(static_cast<double>(bf16_to_float(y[i])), exact,
                0x1p-8 * std::fabs(exact) + 0x1p-13);
  }
}

TEST(EncoderReferenceTest, GeluStaysCloseToTheTruth) {
  const double to_error_function = 1.0 / std::sqrt(2.0);
  const double tanh_scale = std::sqrt(2.0 / std::acos(-1.0));
  for (float x = -12.0F; x < 12.0F; x += 0.00137F) {
    const auto wide = static_cast<double>(x);
    // erfc keeps the left tail's digits.
    const double exact = 0.5 * wide * std::erfc(-wide * to_error_function);
    // A dozen roundings, and those of the exponents, which grow with x^2.
    const double bound = 0x1p-21 * std::fabs(exact) * (1.0 + wide * wide) + 1e-30;
    EXPECT_NEAR(static_cast<double>(gelu_f32(x)), exact, bound) << x;
    const double u = tanh_scale * (wide + 0.044715 * wide * wide * wide);
    const double tanh_form = wide / (1.0 + std::exp(-2.0 * u));
    EXPECT_NEAR(static_cast<double>(gelu_tanh_f32(x)), tanh_form,
                0x1p-21 * std::fabs(tanh_form) * (1.0 + std::fabs(u)) + 1e-30)
        << x;
  }
  EXPECT_EQ(gelu_f32(0.0F), 0.0F);
  EXPECT_EQ(gelu_f32(100.0F), 100.0F);
  EXPECT_EQ(gelu_f32(-100.0F), 0.0F);
  EXPECT_EQ(gelu_tanh_f32(100.0F), 100.0F);
}

}  // namespace
}  // namespace sluice::kernels
