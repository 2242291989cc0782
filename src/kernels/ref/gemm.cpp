#include <algorithm>

#include "kernels/ref/canonical.h"
#include "kernels/ref/table.h"

namespace sluice::kernels::ref {

void gemm_bf16(const GemmArgs& args) noexcept {
  const std::int64_t slice_steps = args.k_steps / args.k_slices;
  const std::int64_t column_end = std::min(args.n, args.panel_end * kPanelColumns);
  for (std::int64_t row = 0; row < args.m; ++row) {
    const bf16_t* a = args.a + row_offset(row, args.k_steps);
    float* out = args.out + row * args.out_stride;
    for (std::int64_t n = args.panel_begin * kPanelColumns; n < column_end; ++n) {
      const bf16_t* w = args.w + packed_index(n / 16 * 16, 0, args.k_steps);
      float slices[4] = {};
      for (std::int64_t s = 0; s < args.k_steps; ++s) {
        float& sum = slices[s / slice_steps];
        sum = product_step(sum, a + s * kTileElements, w + s * kStepElements, n % 16);
      }
      out[n] = args.k_slices == 1 ? slices[0] : (slices[0] + slices[1]) + (slices[2] + slices[3]);
    }
  }
}

}  // namespace sluice::kernels::ref
