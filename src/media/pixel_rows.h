// Rows of decoded samples of any layout, brought into an upright RGB picture. The arithmetic is
// Pillow's, because the reference's pictures come from there; the alpha channel is composited on
// white, as transformers, vLLM and qwen-vl-utils do. Private to media/.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "media/picture.h"

namespace sluice {

enum class SampleLayout { grey, grey_alpha, rgb, rgb_alpha, cmyk };

std::size_t channel_count(SampleLayout layout);

// `source`: whole pixels of the layout; `target`: as many RGB pixels. `wide`: samples are 16 bits
// in the machine's byte order, of which the upper 8 are kept.
void to_rgb(std::span<const std::byte> source, SampleLayout layout, bool wide,
            std::span<std::uint8_t> target);

// Where EXIF orientation 1 to 8 puts pixels; any other value means 1.
class Orientation {
 public:
  Orientation(int exif_value, PictureSize stored);

  // Size of the upright picture.
  PictureSize size() const { return size_; }
  // Places row `y` of the stored picture, RGB, into the pixels of the upright one.
  void place_row(std::span<const std::uint8_t> row, std::int64_t y,
                 std::span<std::uint8_t> pixels) const;

 private:
  PictureSize size_;
  // Index of the upright pixel = origin + x * step_x + y * step_y.
  std::int64_t origin_ = 0;
  std::int64_t step_x_ = 1;
  std::int64_t step_y_ = 0;
};

}  // namespace sluice
