// Canonical products, one output at a time: of bf16 weights, and of fp8 codes as the bf16 weights
// they stand for.
#include <algorithm>

#include "kernels/ref/canonical.h"
#include "kernels/ref/table.h"

namespace sluice::kernels::ref {
namespace {

// A tile that has the weights of column n in step s, in `memory` unless there is one.
const bf16_t* bf16_tile(const GemmArgs& args, std::int64_t n, std::int64_t s, bf16_t* /*memory*/) {
  const auto* w = reinterpret_cast<const bf16_t*>(args.w);
  return w + packed_index(n / 16 * 16, s * kStepK, args.k_steps);
}

const bf16_t* fp8_tile(const GemmArgs& args, std::int64_t n, std::int64_t s, bf16_t* memory) {
  const std::int64_t k_size = args.k_steps * kStepK;
  const std::byte* panel = args.w + n / kPanelColumns * panel_bytes(WeightFormat::fp8, k_size);
  const std::byte* codes = panel + scale_bytes(WeightFormat::fp8, k_size) + s * kFp8StepBytes;
  for (std::int64_t i = 0; i < kStepK; ++i) {
    const auto code = static_cast<std::uint8_t>(codes[packed_index(n % kPanelColumns, i, 1)]);
    memory[packed_index(n % 16, i, 1)] = fp8_weight(code, fp8_scale(panel, s));
  }
  return memory;
}

template <const bf16_t* (*kTile)(const GemmArgs&, std::int64_t, std::int64_t, bf16_t*)>
void gemm(const GemmArgs& args) {
  const std::int64_t slice_steps = args.k_steps / args.k_slices;
  const std::int64_t column_end = std::min(args.n, args.panel_end * kPanelColumns);
  bf16_t memory[kTileElements];
  for (std::int64_t row = 0; row < args.m; ++row) {
    const bf16_t* a = args.a + row_offset(row, args.k_steps);
    float* out = args.out + row * args.out_stride;
    for (std::int64_t n = args.panel_begin * kPanelColumns; n < column_end; ++n) {
      float slices[4] = {};
      for (std::int64_t s = 0; s < args.k_steps; ++s) {
        float& sum = slices[s / slice_steps];
        const bf16_t* tile = kTile(args, n, s, memory);
        sum = product_step(sum, a + s * kTileElements, tile, n % 16);
      }
      out[n] = args.k_slices == 1 ? slices[0] : (slices[0] + slices[1]) + (slices[2] + slices[3]);
    }
  }
}

}  // namespace

void gemm_bf16(const GemmArgs& args) noexcept {
  gemm<bf16_tile>(args);
}

void gemm_fp8(const GemmArgs& args) noexcept {
  gemm<fp8_tile>(args);
}

}  // namespace sluice::kernels::ref
