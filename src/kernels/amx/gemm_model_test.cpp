// The AMX GEMM on a software model of the tile unit: its loops, tails and tile shapes are tested on
// machines without AMX too.
#include <gtest/gtest.h>

#include "kernels/amx/test_tile_unit.h"
#include "kernels/ref/table.h"
#include "kernels/test_support.h"
#include "platform/float_mode.h"

namespace sluice::kernels::amx_model {

// The formats of simd/float_weights.inl and simd/int_weights.inl without vectors.
struct Bf16Weights {
  static constexpr WeightFormat kFormat = WeightFormat::bf16;
  static constexpr std::int64_t kStepBytes = kStepElements * 2;
  static constexpr bool kDecodes = false;
  static void decode_step(const std::byte*, float, std::byte*) {}
};
struct Fp8Weights {
  static constexpr WeightFormat kFormat = WeightFormat::fp8;
  static constexpr std::int64_t kStepBytes = kFp8StepBytes;
  static constexpr bool kDecodes = true;
  static void decode_step(const std::byte* step, float scale, std::byte* out) {
    auto* weights = reinterpret_cast<bf16_t*>(out);
    for (std::int64_t i = 0; i < kStepElements; ++i) {
      weights[i] = fp8_weight(static_cast<std::uint8_t>(step[i]), scale);
    }
  }
};
struct Int8Weights {
  static constexpr WeightFormat kFormat = WeightFormat::int8;
  static constexpr std::int64_t kStepBytes = kIntStepBytes;
  static constexpr bool kDecodes = false;
  static void decode_step(const std::byte*, std::byte*) {}
};
struct Int4Weights {
  static constexpr WeightFormat kFormat = WeightFormat::int4;
  static constexpr std::int64_t kStepBytes = kInt4StepBytes;
  static constexpr bool kDecodes = true;
  static void decode_step(const std::byte* step, std::byte* out) {
    for (std::int64_t n = 0; n < kPanelColumns; ++n) {
      for (std::int64_t k = 0; k < kIntStepK; ++k) {
        const Int4Place place = int4_place(n, k);
        const auto both = static_cast<std::uint8_t>(step[place.code]);
        out[int8_index(n, k)] = static_cast<std::byte>(int4_value(
            static_cast<std::uint8_t>(step[place.scale]), place.high_half ? both >> 4 : both & 15));
      }
    }
  }
};
// clang-format off: each part uses the ones above it.
#include "kernels/amx/product.inl"
#include "kernels/amx/gemm.inl"
#include "kernels/amx/gemm_int.inl"
// clang-format on

namespace {

std::vector<GemmSize> model_cases() {
  std::vector<GemmSize> cases{{50, 300, 544, 1}, {33, 300, 2176, 4}};  // runs that end within
  for (const std::int64_t m : {1, 2, 15, 16, 17, 31, 32, 33, 50, 530}) {
    for (const std::int64_t n : {1, 16, 33, 64, 300}) {
      for (const std::int64_t slices : {1, 4}) {
        cases.push_back({m, n, 256, slices});
      }
    }
  }
  return cases;
}

TEST(AmxModelTest, GemmEqualsReference) {
  const FlushDenormals float_mode;
  for (const GemmSize& size : model_cases()) {
    for (const WeightFormat format : kFloatFormats) {
      Random random(static_cast<std::uint64_t>(size.m * 100 + size.n));
      const std::vector<bf16_t> a = random.row_tiles(size.m, size.k, Values::wide);
      const AlignedBuffer w =
          pack(format, random.bf16s(size.n * size.k, Values::wide), size.n, size.k);
      std::vector<float> expected(static_cast<std::size_t>(size.m * size.n) + 8, kCanary);
      std::vector<float> got = expected;
      const bool wide = format == WeightFormat::bf16;
      (wide ? ref::gemm_bf16 : ref::gemm_fp8)(gemm_args(size, a, w, expected));
      (wide ? gemm_bf16 : gemm_fp8)(gemm_args(size, a, w, got));
      EXPECT_EQ(differences(expected, got), 0)
          << to_string(format) << ' ' << size.m << " x " << size.n << " x " << size.k << ", slices "
          << size.slices;
    }
  }
}

TEST(AmxModelTest, IntegerGemmEqualsReference) {
  const FlushDenormals float_mode;
  constexpr std::int64_t kK = 1090;
  constexpr std::int64_t kN = 300;
  Random random(7);
  const std::vector<bf16_t> w = random.bf16s(kN * kK, Values::normal);
  for (const WeightFormat format : {WeightFormat::int8, WeightFormat::int4}) {
    const AlignedBuffer packed = pack(format, w, kN, kK);
    for (const std::int64_t m : {1, 16, 17, 32, 33, 49}) {
      std::vector<std::int8_t> a(static_cast<std::size_t>(int_rows_bytes(m, kK)));
      for (std::int8_t& value : a) {
        value = static_cast<std::int8_t>(random.uniform() * 255 - 127);
      }
      const std::vector<float> scales = random.floats(m, 1.0);
      std::vector<float> expected(static_cast<std::size_t>(m * kN) + 8, kCanary);
      std::vector<float> got = expected;
      IntGemmArgs args{.a = a.data(),
                       .a_scale = scales.data(),
                       .w = packed.data(),
                       .out = expected.data(),
                       .out_stride = kN,
                       .m = m,
                       .n = kN,
                       .k_steps = int_steps(kK),
                       .panel_begin = 0,
                       .panel_end = pad32(kN) / kPanelColumns};
      const bool wide = format == WeightFormat::int8;
      (wide ? ref::gemm_int8 : ref::gemm_int4)(args);
      args.out = got.data();
      (wide ? gemm_int8 : gemm_int4)(args);
      EXPECT_EQ(differences(expected, got), 0) << to_string(format) << ", " << m << " rows";
    }
  }
}

}  // namespace
}  // namespace sluice::kernels::amx_model
