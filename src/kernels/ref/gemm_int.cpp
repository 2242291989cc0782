// Integer products and the rounding of their activations, one output at a time.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "kernels/ref/table.h"

namespace sluice::kernels::ref {
namespace {

std::int32_t int8_at(const std::byte* steps, std::int64_t n, std::int64_t k) {
  return static_cast<std::int8_t>(steps[k / kIntStepK * kIntStepBytes + int8_index(n, k)]);
}

std::int32_t int4_at(const std::byte* steps, std::int64_t n, std::int64_t k) {
  const std::byte* step = steps + k / kIntStepK * kInt4StepBytes;
  const Int4Place place = int4_place(n, k);
  const auto both = static_cast<std::uint8_t>(step[place.code]);
  return int4_value(static_cast<std::uint8_t>(step[place.scale]),
                    place.high_half ? both >> 4 : both & 15);
}

template <std::int32_t (*kWeightAt)(const std::byte*, std::int64_t, std::int64_t)>
void gemm_int(const IntGemmArgs& args, WeightFormat format) {
  const std::int64_t k_size = args.k_steps * kIntStepK;
  const std::int64_t column_end = std::min(args.n, args.panel_end * kPanelColumns);
  for (std::int64_t row = 0; row < args.m; ++row) {
    const std::int8_t* a = args.a + int_row_offset(row, args.k_steps);
    for (std::int64_t n = args.panel_begin * kPanelColumns; n < column_end; ++n) {
      const std::byte* panel = args.w + n / kPanelColumns * panel_bytes(format, k_size);
      std::int32_t sum = 0;
      for (std::int64_t k = 0; k < k_size; ++k) {
        sum += a[k / kIntStepK * kIntTileBytes + k % kIntStepK] *
               kWeightAt(panel + kPanelScaleBytes, n, k);
      }
      float scale = 0.0F;
      std::memcpy(&scale, panel + n % kPanelColumns * 4, sizeof scale);
      args.out[row * args.out_stride + n] = (static_cast<float>(sum) * scale) * args.a_scale[row];
    }
  }
}

}  // namespace

void gemm_int8(const IntGemmArgs& args) noexcept {
  gemm_int<int8_at>(args, WeightFormat::int8);
}

void gemm_int4(const IntGemmArgs& args) noexcept {
  gemm_int<int4_at>(args, WeightFormat::int4);
}

void quantise_row(const QuantiseRowArgs& args) noexcept {
  bf16_t largest_bits = 0;
  for (std::int64_t i = 0; i < args.size; ++i) {
    largest_bits = std::max(largest_bits, static_cast<bf16_t>(args.x[i] & 0x7fffU));
  }
  const float largest = bf16_to_float(largest_bits);
  const bool finite = largest_bits < 0x7f80U;
  const bool zero = !finite || largest < kQuantisedMin;
  const float inverse = zero ? 0.0F : 127.0F / largest;
  for (std::int64_t i = 0; i < pad64(args.size); ++i) {
    const bool used = !zero && i < args.size;
    args.y[i / kIntStepK * kIntTileBytes + i % kIntStepK] =
        static_cast<std::int8_t>(used ? std::nearbyint(bf16_to_float(args.x[i]) * inverse) : 0.0F);
  }
  *args.scale = !finite ? std::numeric_limits<float>::quiet_NaN() : zero ? 0.0F : largest / 127.0F;
}

}  // namespace sluice::kernels::ref
