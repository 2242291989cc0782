// The AMX GEMM run on a software model of the tile unit, so that its loops, tails and tile shapes
// are tested on machines without AMX too. The model refuses what the hardware would refuse.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "kernels/amx/tile_config.h"
#include "kernels/ref/table.h"
#include "kernels/test_support.h"
#include "platform/float_mode.h"

namespace sluice::kernels::amx_model {

using amx::product_config;
using amx::TileConfig;

// Eight tiles of up to 16 rows x 64 bytes, as TDPBF16PS sees them (Intel SDM).
class TileUnit {
 public:
  void configure(const TileConfig* config) {
    config_ = *config;
    configured_ = true;
    std::memset(data_, 0, sizeof data_);
  }
  void release() { configured_ = false; }
  void zero(int tile) {
    expect_usable(tile);
    std::memset(data_[tile], 0, sizeof data_[tile]);
  }
  void load(int tile, const void* base, std::int64_t stride) {
    expect_usable(tile);
    for (int row = 0; row < config_.rows[tile]; ++row) {
      std::memcpy(data_[tile][row], static_cast<const char*>(base) + row * stride,
                  config_.row_bytes[tile]);
    }
  }
  void store(int tile, void* base, std::int64_t stride) {
    expect_usable(tile);
    for (int row = 0; row < config_.rows[tile]; ++row) {
      std::memcpy(static_cast<char*>(base) + row * stride, data_[tile][row],
                  config_.row_bytes[tile]);
    }
  }
  void dot(int sum, int a, int b) {
    expect_usable(sum);
    expect_usable(a);
    expect_usable(b);
    ASSERT_EQ(config_.rows[sum], config_.rows[a]);
    ASSERT_EQ(config_.row_bytes[sum], config_.row_bytes[b]);
    ASSERT_EQ(config_.row_bytes[a] / 4, config_.rows[b]);
    for (int row = 0; row < config_.rows[sum]; ++row) {
      for (int column = 0; column < config_.row_bytes[b] / 4; ++column) {
        float even = 0.0F;
        float odd = 0.0F;
        for (int pair = 0; pair < config_.rows[b]; ++pair) {
          even = std::fma(bf16(a, row, 2 * pair), bf16(b, pair, 2 * column), even);
          odd = std::fma(bf16(a, row, 2 * pair + 1), bf16(b, pair, 2 * column + 1), odd);
        }
        float acc = 0.0F;
        std::memcpy(&acc, data_[sum][row] + 4 * column, 4);
        acc = acc + (even + odd);
        std::memcpy(data_[sum][row] + 4 * column, &acc, 4);
      }
    }
  }
  void dot_int8(int sum, int a, int b) {
    expect_usable(sum);
    expect_usable(a);
    expect_usable(b);
    ASSERT_EQ(config_.rows[sum], config_.rows[a]);
    ASSERT_EQ(config_.row_bytes[a] / 4, config_.rows[b]);
    for (int row = 0; row < config_.rows[sum]; ++row) {
      for (int column = 0; column < config_.row_bytes[b] / 4; ++column) {
        std::int32_t acc = 0;
        std::memcpy(&acc, data_[sum][row] + 4 * column, 4);
        for (int i = 0; i < config_.row_bytes[a]; ++i) {
          acc += static_cast<std::int8_t>(data_[a][row][i]) *
                 static_cast<std::int8_t>(data_[b][i / 4][4 * column + i % 4]);
        }
        std::memcpy(data_[sum][row] + 4 * column, &acc, 4);
      }
    }
  }

 private:
  void expect_usable(int tile) const {
    ASSERT_TRUE(configured_) << "tile instruction without configuration: SIGILL";
    ASSERT_GT(config_.rows[tile], 0) << "tile " << tile << " has no rows: SIGILL";
  }
  float bf16(int tile, int row, int element) const {
    bf16_t bits = 0;
    std::memcpy(&bits, data_[tile][row] + 2 * element, 2);
    return bf16_to_float(bits);
  }

  TileConfig config_;
  bool configured_ = false;
  char data_[8][16][64] = {};
};

static TileUnit unit;

#define SLUICE_TILE_BARRIER() (void)0
#define SLUICE_TILE_CONFIGURE(config) unit.configure(config)
#define SLUICE_TILE_RELEASE() unit.release()
#define SLUICE_TILE_ZERO(tile) unit.zero(tile)
#define SLUICE_TILE_LOAD(tile, base, stride) unit.load(tile, base, stride)
#define SLUICE_TILE_STORE(tile, base, stride) unit.store(tile, base, stride)
#define SLUICE_TILE_DOT(sum, a, b) unit.dot(sum, a, b)
#define SLUICE_TILE_PREFETCH(address) (void)(address)
#define SLUICE_TILE_DOT_INT8(sum, a, b) unit.dot_int8(sum, a, b)
#include "kernels/amx/gemm.inl"

// The formats of simd/int_weights.inl without vectors.
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
        out[int8_index(n, k)] =
            static_cast<std::byte>(int4_value(static_cast<std::uint8_t>(step[place.scale]),
                                              place.high_half ? both >> 4 : both & 15));
      }
    }
  }
};
#include "kernels/amx/gemm_int.inl"

namespace {

TEST(AmxModelTest, GemmEqualsReference) {
  const FlushDenormals float_mode;
  for (const std::int64_t m : {1, 2, 15, 16, 17, 31, 32, 33, 50, 530}) {
    for (const std::int64_t n : {1, 16, 33, 64, 300}) {
      for (const std::int64_t slices : {1, 4}) {
        constexpr std::int64_t kK = 256;
        Random random(static_cast<std::uint64_t>(m * 100 + n));
        const std::vector<bf16_t> a = random.bf16s(m * kK, Values::wide);
        const std::vector<bf16_t> w = random.packed(n, kK, Values::wide);
        std::vector<float> expected(static_cast<std::size_t>(m * n) + 8, kCanary);
        std::vector<float> got = expected;
        GemmArgs args{.a = a.data(),
                      .a_stride = kK,
                      .w = w.data(),
                      .out = expected.data(),
                      .out_stride = n,
                      .m = m,
                      .n = n,
                      .k_steps = kK / kStepK,
                      .k_slices = slices,
                      .panel_begin = 0,
                      .panel_end = pad32(n) / kPanelColumns};
        ref::gemm_bf16(args);
        args.out = got.data();
        gemm_bf16(args);
        EXPECT_EQ(differences(expected, got), 0) << m << " x " << n << ", slices " << slices;
      }
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
    std::vector<std::byte> packed(static_cast<std::size_t>(packed_bytes(format, kN, kK)));
    pack_weight_rows(format, w.data(), 0, kN, kK, packed.data());
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
