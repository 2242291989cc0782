#include "model/mrope.h"

#include <algorithm>

#include "base/check.h"

namespace sluice {

MropePositions::MropePositions(std::span<const VisionSpan> spans) {
  pictures_.reserve(spans.size());
  std::int64_t index = 0;
  std::int64_t position = 0;
  for (const VisionSpan& span : spans) {
    const std::int64_t rows = span.input->grid_rows / kVisionMergeSize;
    const std::int64_t columns = span.input->grid_columns / kVisionMergeSize;
    SLUICE_CHECK(span.position >= index);
    SLUICE_CHECK(rows >= 1);
    SLUICE_CHECK(columns >= 1);
    position += span.position - index;  // the text before it
    index = span.position + rows * columns;
    pictures_.push_back({.begin = span.position,
                         .end = index,
                         .columns = columns,
                         .position_begin = position,
                         .position_end = position + std::max(rows, columns)});
    position = pictures_.back().position_end;
  }
}

std::array<std::int32_t, 3> MropePositions::at(std::int64_t index) const {
  const auto same = [](std::int64_t position) {
    const auto p = static_cast<std::int32_t>(position);
    return std::array{p, p, p};
  };
  const auto next = std::ranges::upper_bound(pictures_, index, {}, &Picture::begin);
  if (next == pictures_.begin()) {
    return same(index);
  }
  const Picture& picture = *(next - 1);
  if (index >= picture.end) {
    return same(picture.position_end + (index - picture.end));
  }
  const std::int64_t inside = index - picture.begin;
  return {static_cast<std::int32_t>(picture.position_begin),
          static_cast<std::int32_t>(picture.position_begin + inside / picture.columns),
          static_cast<std::int32_t>(picture.position_begin + inside % picture.columns)};
}

}  // namespace sluice
