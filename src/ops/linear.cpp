#include "ops/linear.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/check.h"
#include "base/checked_math.h"

namespace sluice::ops {
namespace {

using kernels::WeightFormat;

std::int64_t panels_of(const PackedLinear& weight) {
  return ceil_div(weight.out_features(), kernels::kPanelColumns);
}

void multiply_float(const kernels::KernelTable& table, const bf16_t* tiles, std::int64_t rows,
                    const LinearProduct& product, Reduction reduction, std::int64_t panel_begin,
                    std::int64_t panel_end) {
  const PackedLinear& weight = *product.weight;
  const auto gemm = weight.format() == WeightFormat::bf16 ? table.gemm_bf16 : table.gemm_fp8;
  const bool sliced =
      reduction == Reduction::row_parallel && weight.in_features() % (4 * kernels::kStepK) == 0;
  gemm({.a = tiles,
        .w = weight.packed(),
        .out = product.out,
        .out_stride = weight.out_features(),
        .m = rows,
        .n = weight.out_features(),
        .k_steps = kernels::pad32(weight.in_features()) / kernels::kStepK,
        .k_slices = sliced ? 4 : 1,
        .panel_begin = panel_begin,
        .panel_end = panel_end});
}

void multiply_integer(const kernels::KernelTable& table, const RowTiles& input, std::int64_t rows,
                      const LinearProduct& product, std::int64_t panel_begin,
                      std::int64_t panel_end) {
  const PackedLinear& weight = *product.weight;
  const auto gemm = weight.format() == WeightFormat::int8 ? table.gemm_int8 : table.gemm_int4;
  gemm({.a = input.quantised,
        .a_scale = input.scales,
        .w = weight.packed(),
        .out = product.out,
        .out_stride = weight.out_features(),
        .m = rows,
        .n = weight.out_features(),
        .k_steps = kernels::int_steps(weight.in_features()),
        .panel_begin = panel_begin,
        .panel_end = panel_end});
}

}  // namespace

Result<PackedLinear> PackedLinear::allocate(WeightFormat format, std::int64_t out_features,
                                            std::int64_t in_features) {
  if (kernels::is_integer(format) && in_features > kernels::kIntProductKMax) {
    return fail(ErrorCode::unsupported,
                fmt::format("a weight with {} inputs in {}: its sums fit 32 bits up to {}",
                            in_features, kernels::to_string(format), kernels::kIntProductKMax));
  }
  PackedLinear linear;
  linear.format_ = format;
  linear.out_features_ = out_features;
  linear.in_features_ = in_features;
  linear.buffer_ = SLUICE_TRY(AlignedBuffer::allocate(linear.bytes()));
  return linear;
}

Result<PackedLinear> PackedLinear::view(WeightFormat format, std::int64_t out_features,
                                        std::int64_t in_features,
                                        std::span<const std::byte> packed) {
  PackedLinear linear;
  linear.format_ = format;
  linear.out_features_ = out_features;
  linear.in_features_ = in_features;
  linear.view_ = packed.data();
  if (packed.size() != linear.bytes() ||
      reinterpret_cast<std::uintptr_t>(packed.data()) % 64 != 0 ||
      (kernels::is_integer(format) && in_features > kernels::kIntProductKMax)) {
    return fail(ErrorCode::corrupt_data,
                fmt::format("packed weight [{}, {}] in {}: {} bytes, want {} at a multiple of 64",
                            out_features, in_features, kernels::to_string(format), packed.size(),
                            linear.bytes()));
  }
  return linear;
}

void PackedLinear::set_rows(std::int64_t row, std::int64_t count, const kernels::WeightRows& rows) {
  const std::int64_t at_once = kernels::rows_packed_at_once(format_);
  SLUICE_DCHECK(view_ == nullptr);
  SLUICE_DCHECK(row % at_once == 0);
  SLUICE_DCHECK(count % at_once == 0 || row + count == out_features_);
  kernels::pack_weight_rows(format_, rows, row, count, in_features_, buffer_.data());
}

const bf16_t* LinearInput::tiles(ThreadPool& pool) {
  if (is_tiled_) {
    return memory_.tiles;
  }
  const std::int64_t steps = kernels::pad32(features_) / kernels::kStepK;
  pool.for_ranges(rows_, kernels::kRowsOfTile, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; i += kernels::kRowsOfTile) {
      kernels::tile_rows(row(i), std::min(kernels::kRowsOfTile, end - i), steps,
                         memory_.tiles + i * kernels::pad32(features_));
    }
  });
  is_tiled_ = true;
  return memory_.tiles;
}

const RowTiles& LinearInput::quantised(const kernels::KernelTable& table, ThreadPool& pool) {
  if (is_quantised_) {
    return memory_;
  }
  const std::int64_t steps = kernels::int_steps(features_);
  const auto quantise = [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      table.quantise_row({.x = row(i),
                          .y = memory_.quantised + kernels::int_row_offset(i, steps),
                          .scale = memory_.scales + i,
                          .size = features_});
    }
  };
  pool.for_ranges(rows_, 1, quantise);
  is_quantised_ = true;
  return memory_;
}

void linear(const kernels::KernelTable& table, ThreadPool& pool, LinearInput& input,
            std::span<const LinearProduct> products, Reduction reduction) {
  const bf16_t* tiles = nullptr;
  const RowTiles* quantised = nullptr;
  std::int64_t panels = 0;
  for (const LinearProduct& product : products) {
    SLUICE_DCHECK(input.features() == product.weight->in_features());
    if (kernels::is_integer(product.weight->format())) {
      quantised = &input.quantised(table, pool);
    } else {
      tiles = input.tiles(pool);
    }
    panels += panels_of(*product.weight);
  }
  pool.for_ranges(panels, 1, [&](std::int64_t begin, std::int64_t end) {
    std::int64_t first = 0;  // panel of this product, among those of all
    for (const LinearProduct& product : products) {
      const std::int64_t count = panels_of(*product.weight);
      const std::int64_t from = std::max(begin - first, std::int64_t{0});
      const std::int64_t to = std::min(end - first, count);
      first += count;
      if (from >= to) {
        continue;
      }
      if (kernels::is_integer(product.weight->format())) {
        multiply_integer(table, *quantised, input.rows(), product, from, to);
      } else {
        multiply_float(table, tiles, input.rows(), product, reduction, from, to);
      }
    }
  });
}

void linear(const kernels::KernelTable& table, ThreadPool& pool, LinearInput& input,
            const PackedLinear& weight, Reduction reduction, float* out) {
  const LinearProduct product{.weight = &weight, .out = out};
  linear(table, pool, input, std::span(&product, 1), reduction);
}

}  // namespace sluice::ops
