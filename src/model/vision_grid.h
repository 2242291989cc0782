// The patches of a picture in the order of the encoder, and what follows from a patch's place: its
// taps in the learned position table and its rotary angles. Knows no weights and no pixels.
//
// Order: blocks of 2 x 2 patches row by row over the picture, the four patches of a block row by
// row, so that what the merger makes one row of is adjacent.
//
//    0  1 |  4  5 |  8  9
//    2  3 |  6  7 | 10 11
//   ------+-------+------
//   12 13 | 16 17 | ..
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "request/vision_input.h"
#include "weights/model_config.h"

namespace sluice {

class VisionGrid {
 public:
  // Both even and >= 2 (checked). `config`: of the encoder.
  VisionGrid(const VisionConfig& config, std::int64_t rows, std::int64_t columns);

  struct Place {
    std::int64_t row;
    std::int64_t column;
  };

  std::int64_t patches() const { return rows_ * columns_; }
  Place place(std::int64_t patch) const;

  // Rows of the position table around a patch, and their weights: the table is stretched over the
  // picture, corner on corner, and read bilinearly (model code: fast_pos_embed_interpolate).
  struct Taps {
    std::array<std::int64_t, 4> rows;
    std::array<float, 4> weights;
  };
  Taps taps(std::int64_t patch) const;

  // cos and sin of a patch: [head_dim / 4 of its row | head_dim / 4 of its column].
  void turn(std::int64_t patch, float* cos, float* sin) const;

 private:
  std::int64_t rows_;
  std::int64_t columns_;
  std::int64_t table_side_;   // of the position table
  std::int64_t frequencies_;  // head_dim / 4
  std::vector<float> cos_;    // [max(rows, columns)][frequencies]
  std::vector<float> sin_;
};

}  // namespace sluice
