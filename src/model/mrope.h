// Positions of a sequence for the rotary embedding, on three axes. Text counts all three up
// together. A picture of r x c merged patches stands still in time and counts rows and columns;
// what follows it goes on after the longer of its sides. Knows where pictures are, not what they
// show.
//
//   index       0 1 2 | 3 4 5 6 7 8 | 9 10        text, a picture of 2 x 3, text
//   temporal    0 1 2 | 3 3 3 3 3 3 | 6 7
//   height      0 1 2 | 3 3 3 4 4 4 | 6 7
//   width       0 1 2 | 3 4 5 3 4 5 | 6 7
//
// Frames of a video are pictures of their own (transformers, Qwen3_5Model.get_rope_index).
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "request/vision_input.h"

namespace sluice {

class MropePositions {
 public:
  MropePositions() = default;  // text only
  // Ascending, not overlapping (checked).
  explicit MropePositions(std::span<const VisionSpan> spans);

  // Temporal, height and width of the token `index` >= 0 of the sequence; it may lie beyond the
  // prompt. Never greater than index. O(log spans).
  std::array<std::int32_t, 3> at(std::int64_t index) const;

 private:
  struct Picture {
    std::int64_t begin;    // index of its first row
    std::int64_t end;      // index after its last row
    std::int64_t columns;  // merged
    std::int64_t position_begin;
    std::int64_t position_end;
  };
  std::vector<Picture> pictures_;
};

}  // namespace sluice
