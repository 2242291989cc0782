// A software model of the tile unit, and of the lanes beside it, on which the AMX kernels run in
// tests on machines without AMX. The model refuses what the hardware would refuse.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <cstring>

#include "kernels/amx/tile_config.h"
#include "kernels/kernel_table.h"
#include "kernels/ref/canonical.h"
#include "kernels/scalar_math.h"

#define SLUICE_INLINE static inline

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

inline TileUnit tile_unit;

// Sixteen fp32 lanes in plain code, as far as the tile kernels need them (avx512/vec.inl).
struct V16 {
  float v[16];
};

template <typename F>
V16 lanes(F value) {
  V16 x{};
  for (int i = 0; i < 16; ++i) {
    x.v[i] = value(i);
  }
  return x;
}
inline V16 set1(float x) {
  return lanes([&](int) { return x; });
}
inline V16 zero() {
  return set1(0.0F);
}
inline V16 load(const float* p) {
  return lanes([&](int i) { return p[i]; });
}
inline void store(float* p, V16 x) {
  std::memcpy(p, x.v, sizeof x.v);
}
inline V16 load_first(const float* p, std::int64_t count) {
  return lanes([&](int i) { return i < count ? p[i] : 0.0F; });
}
inline void store_first(float* p, V16 x, std::int64_t count) {
  for (std::int64_t i = 0; i < count && i < 16; ++i) {
    p[i] = x.v[i];
  }
}
inline V16 add(V16 a, V16 b) {
  return lanes([&](int i) { return a.v[i] + b.v[i]; });
}
inline V16 sub(V16 a, V16 b) {
  return lanes([&](int i) { return a.v[i] - b.v[i]; });
}
inline V16 mul(V16 a, V16 b) {
  return lanes([&](int i) { return a.v[i] * b.v[i]; });
}
inline V16 div(V16 a, V16 b) {
  return lanes([&](int i) { return a.v[i] / b.v[i]; });
}
inline V16 fnma(V16 a, V16 b, V16 c) {
  return lanes([&](int i) { return std::fma(-a.v[i], b.v[i], c.v[i]); });
}
inline V16 fma(V16 a, V16 b, V16 c) {
  return lanes([&](int i) { return std::fma(a.v[i], b.v[i], c.v[i]); });
}
inline V16 max(V16 a, V16 b) {
  return lanes([&](int i) { return a.v[i] > b.v[i] ? a.v[i] : b.v[i]; });
}
inline V16 keep_first(V16 x, std::int64_t count, V16 other) {
  return lanes([&](int i) { return i < count ? x.v[i] : other.v[i]; });
}
inline V16 exp_f32(V16 x) {
  return lanes([&](int i) { return kernels::exp_f32(x.v[i]); });
}

constexpr int kChainVectors = 2;

// Sixteen int32 lanes (avx512/bytes.inl).
struct I16 {
  std::int32_t v[16];
};
inline I16 load_i32(const std::int32_t* p) {
  I16 x{};
  std::memcpy(x.v, p, sizeof x.v);
  return x;
}
inline V16 to_float(I16 x) {
  return lanes([&](int i) { return static_cast<float>(x.v[i]); });
}

inline float fold_add(V16 x) {
  return ref::fold_lanes(x.v);
}
inline float fold_max(V16 x) {
  float largest = x.v[0];
  for (const float value : x.v) {
    largest = value > largest ? value : largest;
  }
  return largest;
}
inline void store_first_bf16(bf16_t* p, V16 x, std::int64_t count) {
  for (std::int64_t i = 0; i < count && i < 16; ++i) {
    p[i] = float_to_bf16(x.v[i]);
  }
}
inline V16 diff_f64(double g, const double* other) {
  return lanes([&](int i) { return static_cast<float>(g - other[i]); });
}
inline void store_bf16(bf16_t* p, V16 x) {
  store_first_bf16(p, x, 16);
}

// One row of a packed tile.
struct Pairs {
  bf16_t v[32];
};
inline Pairs load_pairs(const bf16_t* p) {
  Pairs x{};
  std::memcpy(x.v, p, sizeof x.v);
  return x;
}
inline V16 even(Pairs p) {
  return lanes([&](int i) { return bf16_to_float(p.v[2 * i]); });
}
inline V16 odd(Pairs p) {
  return lanes([&](int i) { return bf16_to_float(p.v[2 * i + 1]); });
}
inline void store_split(bf16_t* high, bf16_t* low, V16 x0, V16 x1) {
  for (int i = 0; i < 32; ++i) {
    const float x = (i % 2 == 0 ? x0 : x1).v[i / 2];
    high[i] = float_to_bf16(x);
    low[i] = float_to_bf16(x - bf16_to_float(high[i]));
  }
}
inline void store_bf16_pair(bf16_t* p, V16 first, V16 second) {
  store_first_bf16(p, first, 16);
  store_first_bf16(p + 16, second, 16);
}

}  // namespace sluice::kernels::amx_model

#define SLUICE_TILE_BARRIER() (void)0
#define SLUICE_TILE_CONFIGURE(config) tile_unit.configure(config)
#define SLUICE_TILE_RELEASE() tile_unit.release()
#define SLUICE_TILE_ZERO(tile) tile_unit.zero(tile)
#define SLUICE_TILE_LOAD(tile, base, stride) tile_unit.load(tile, base, stride)
#define SLUICE_TILE_STORE(tile, base, stride) tile_unit.store(tile, base, stride)
#define SLUICE_TILE_DOT(sum, a, b) tile_unit.dot(sum, a, b)
#define SLUICE_TILE_DOT_INT8(sum, a, b) tile_unit.dot_int8(sum, a, b)
#define SLUICE_TILE_LOAD_PASSING(tile, base, stride) tile_unit.load(tile, base, stride)
#define SLUICE_TILE_PREFETCH(address) (void)(address)
#define SLUICE_TILE_PREFETCH_L2(address) (void)(address)
#define SLUICE_TILE_PREFETCH_WRITE(address) (void)(address)
