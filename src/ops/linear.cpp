#include "ops/linear.h"

#include "base/checked_math.h"

namespace sluice::ops {

Result<PackedLinear> PackedLinear::allocate(std::int64_t out_features, std::int64_t in_features) {
  PackedLinear linear;
  linear.out_features_ = out_features;
  linear.in_features_ = in_features;
  linear.buffer_ = SLUICE_TRY(AlignedBuffer::allocate(
      static_cast<std::size_t>(kernels::packed_elements(out_features, in_features)) *
      sizeof(bf16_t)));
  return linear;
}

void PackedLinear::set_rows(std::int64_t row, std::int64_t count, const bf16_t* rows) {
  kernels::pack_rows(rows, row, count, in_features_, buffer_.as<bf16_t>());
}

void linear(const kernels::KernelTable& table, ThreadPool& pool, const bf16_t* x, std::int64_t rows,
            const PackedLinear& weight, Reduction reduction, float* out) {
  const std::int64_t panels = ceil_div(weight.out_features(), kernels::kPanelColumns);
  const bool sliced =
      reduction == Reduction::row_parallel && weight.in_features() % (4 * kernels::kStepK) == 0;
  pool.for_ranges(panels, 1, [&](std::int64_t begin, std::int64_t end) {
    table.gemm_bf16({.a = x,
                     .a_stride = kernels::pad32(weight.in_features()),
                     .w = weight.packed(),
                     .out = out,
                     .out_stride = weight.out_features(),
                     .m = rows,
                     .n = weight.out_features(),
                     .k_steps = kernels::pad32(weight.in_features()) / kernels::kStepK,
                     .k_slices = sliced ? 4 : 1,
                     .panel_begin = begin,
                     .panel_end = end});
  });
}

}  // namespace sluice::ops
