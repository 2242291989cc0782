// The reductions of the numerics contract, written for reading: one output at a time.
#pragma once

#include <cmath>
#include <cstdint>

#include "kernels/layout.h"

namespace sluice::kernels::ref {

// One step of a product: acc + (even chain + odd chain) over 32 values of k.
// a: 32 consecutive bf16. w: the packed half panel (tile) of this step, `column` in [0, 16).
inline float product_step(float acc, const bf16_t* a, const bf16_t* tile, std::int64_t column) {
  float even = 0.0F;
  float odd = 0.0F;
  for (std::int64_t pair = 0; pair < 16; ++pair) {
    const bf16_t* w = tile + pair * 32 + column * 2;
    even = std::fma(bf16_to_float(a[2 * pair]), bf16_to_float(w[0]), even);
    odd = std::fma(bf16_to_float(a[2 * pair + 1]), bf16_to_float(w[1]), odd);
  }
  return acc + (even + odd);
}

// Steps [begin, end) of column n of a packed operand with `steps` steps, added to acc.
inline float product(float acc, const bf16_t* a, const bf16_t* packed, std::int64_t n,
                     std::int64_t steps, std::int64_t begin, std::int64_t end) {
  const bf16_t* half = packed + (n / 32 * steps * 2 + n % 32 / 16) * kTileElements;
  for (std::int64_t s = begin; s < end; ++s) {
    acc = product_step(acc, a + 32 * s, half + s * kStepElements, n % 16);
  }
  return acc;
}

// Folds 16 lanes to one: 8 + 8, 4 + 4, 2 + 2, 1 + 1.
inline float fold_lanes(float (&lanes)[16]) {
  for (int width = 8; width >= 1; width /= 2) {
    for (int i = 0; i < width; ++i) {
      lanes[i] = lanes[i] + lanes[i + width];
    }
  }
  return lanes[0];
}

// Sum of squares: element i goes to lane i % 16.
inline float sum_of_squares(const float* x, std::int64_t size) {
  float lanes[16] = {};
  for (std::int64_t i = 0; i < size; ++i) {
    lanes[i % 16] = std::fma(x[i], x[i], lanes[i % 16]);
  }
  return fold_lanes(lanes);
}

inline float rms_scale(const float* x, std::int64_t size, float eps) {
  return 1.0F / std::sqrt(sum_of_squares(x, size) / static_cast<float>(size) + eps);
}

}  // namespace sluice::kernels::ref
