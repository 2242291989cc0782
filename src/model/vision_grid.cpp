#include "model/vision_grid.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "kernels/scalar_math.h"

namespace sluice {
namespace {

// Where index i of `count` lies on an axis of the table: between two rows of it, in fp32.
struct AxisTap {
  std::int64_t low;
  std::int64_t high;
  float part;  // how far from low, [0, 1)
};

AxisTap axis_tap(std::int64_t i, std::int64_t count, std::int64_t side) {
  const float s = static_cast<float>(i * (side - 1)) / static_cast<float>(count - 1);
  const auto low = static_cast<std::int64_t>(s);
  return {low, std::min(low + 1, side - 1), s - static_cast<float>(low)};
}

}  // namespace

VisionGrid::VisionGrid(const VisionConfig& config, std::int64_t rows, std::int64_t columns)
    : rows_(rows),
      columns_(columns),
      table_side_(std::llround(std::sqrt(static_cast<double>(config.num_position_embeddings)))),
      frequencies_(config.hidden_size / config.num_heads / 4) {
  for (const std::int64_t side : {rows, columns}) {
    SLUICE_CHECK(side >= kVisionMergeSize);
    SLUICE_CHECK(side % kVisionMergeSize == 0);
  }
  std::vector<double> frequency;
  for (std::int64_t j = 0; j < frequencies_; ++j) {
    const double exponent = -static_cast<double>(j) / static_cast<double>(frequencies_);
    frequency.push_back(kernels::power_f64(config.rope_theta, exponent));
  }
  for (std::int64_t position = 0; position < std::max(rows, columns); ++position) {
    for (const double f : frequency) {
      const kernels::SinCos value = kernels::sincos_f64(static_cast<double>(position) * f);
      cos_.push_back(value.cos);
      sin_.push_back(value.sin);
    }
  }
}

VisionGrid::Place VisionGrid::place(std::int64_t patch) const {
  constexpr std::int64_t kBlock = kVisionMergeSize * kVisionMergeSize;
  const std::int64_t blocks_across = columns_ / kVisionMergeSize;
  const std::int64_t block = patch / kBlock;
  const std::int64_t inside = patch % kBlock;
  return {.row = block / blocks_across * kVisionMergeSize + inside / kVisionMergeSize,
          .column = block % blocks_across * kVisionMergeSize + inside % kVisionMergeSize};
}

VisionGrid::Taps VisionGrid::taps(std::int64_t patch) const {
  const Place at = place(patch);
  const AxisTap r = axis_tap(at.row, rows_, table_side_);
  const AxisTap c = axis_tap(at.column, columns_, table_side_);
  return {.rows = {r.low * table_side_ + c.low, r.low * table_side_ + c.high,
                   r.high * table_side_ + c.low, r.high * table_side_ + c.high},
          .weights = {(1.0F - r.part) * (1.0F - c.part), (1.0F - r.part) * c.part,
                      r.part * (1.0F - c.part), r.part * c.part}};
}

void VisionGrid::turn(std::int64_t patch, float* cos, float* sin) const {
  const Place at = place(patch);
  for (const std::int64_t position : {at.row, at.column}) {
    cos = std::copy_n(cos_.begin() + position * frequencies_, frequencies_, cos);
    sin = std::copy_n(sin_.begin() + position * frequencies_, frequencies_, sin);
  }
}

}  // namespace sluice
