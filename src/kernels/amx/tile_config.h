// The 64-byte memory image of the AMX tile configuration (Intel SDM, LDTILECFG, palette 1).
#pragma once

#include <cstdint>

namespace sluice::kernels::amx {

struct alignas(64) TileConfig {
  std::uint8_t palette = 1;
  std::uint8_t start_row = 0;
  std::uint8_t reserved[14] = {};
  std::uint16_t row_bytes[16] = {};
  std::uint8_t rows[16] = {};
};
static_assert(sizeof(TileConfig) == 64);

// Tiles of the product: 0, 1 sums of the upper rows; 2, 3 sums of the lower rows; 4, 5 activations
// of the upper and lower rows; 6, 7 weights of two half panels.
constexpr TileConfig product_config(int upper_rows, int lower_rows) {
  TileConfig config;
  const int rows[8] = {upper_rows, upper_rows, lower_rows, lower_rows,
                       upper_rows, lower_rows, 16,         16};
  for (int tile = 0; tile < 8; ++tile) {
    config.rows[tile] = static_cast<std::uint8_t>(rows[tile]);
    config.row_bytes[tile] = static_cast<std::uint16_t>(rows[tile] == 0 ? 0 : 64);
  }
  return config;
}

}  // namespace sluice::kernels::amx
