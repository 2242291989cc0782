// Arguments of the integer operators of the kernel table: activations rounded to int8, and their
// products with int8 and int4 weights (docs/NUMERICS.md).
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/weight_format.h"

namespace sluice::kernels {

// One row for integer products. largest = max |x|; scale = largest / 127; y = x * (127 / largest),
// to nearest even, -127 to 127. A row below kQuantisedMin is zero with scale 0; a row with a value
// that is not finite is zero with scale NaN, so its products are NaN. Class: exact.
struct QuantiseRowArgs {
  const bf16_t* x;  // pad32(size) values
  std::int8_t* y;   // step s of 64 at y + s * kIntTileBytes; int_steps(size) steps
  float* scale;
  std::int64_t size;  // padding beyond it becomes zero
};
inline constexpr float kQuantisedMin = 0x1p-100F;

// out[m, n] = a[m, k] . w[n, k]^T for the panels [panel_begin, panel_end) of w in int8 or int4.
// The sum over k is an exact int32, so any order gives the same; then
// out = (float(sum) * column scale of w) * scale of the row.
struct IntGemmArgs {
  const std::int8_t* a;  // int_rows_bytes(m, k)
  const float* a_scale;  // [m]
  const std::byte* w;    // kernels/weight_format.h, 64-byte aligned
  float* out;
  std::int64_t out_stride;
  std::int64_t m;
  std::int64_t n;        // valid columns; columns of the last panel beyond n are not written
  std::int64_t k_steps;  // int_steps(k); k <= kIntProductKMax
  std::int64_t panel_begin;
  std::int64_t panel_end;
};

}  // namespace sluice::kernels
