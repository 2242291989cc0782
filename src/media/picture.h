// A decoded picture, and its size: what the parts of media/ hand to each other.
#pragma once

#include <cstdint>
#include <vector>

namespace sluice {

struct PictureSize {
  std::int64_t width = 0;
  std::int64_t height = 0;

  // Sides are at most kPictureSideMax wherever pictures come in, so this cannot overflow.
  std::int64_t pixel_count() const { return width * height; }
  friend bool operator==(const PictureSize&, const PictureSize&) = default;
};

// Longest side of anything decoded; the longest that JPEG and GIF can express.
inline constexpr std::int64_t kPictureSideMax = 65535;

struct Picture {
  PictureSize size;
  std::vector<std::uint8_t> pixels;  // RGB, [height][width][3]
};

}  // namespace sluice
