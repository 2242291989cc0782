#include "media/pixel_rows.h"

#include <algorithm>
#include <cstring>

#include "base/check.h"

namespace sluice {
namespace {

constexpr std::size_t kRgb = 3;

// value / 255 rounded, for products of two bytes.
std::uint32_t divide_by_255(std::uint32_t value) {
  const std::uint32_t rounded = value + 128;
  return ((rounded >> 8U) + rounded) >> 8U;
}

// `Image.alpha_composite` over opaque white: seven more bits than the result, rounded once.
std::uint8_t over_white(std::uint32_t value, std::uint32_t alpha) {
  constexpr std::uint32_t kExtraBits = 7;
  const std::uint32_t sum = (value * alpha + 255U * (255U - alpha)) << kExtraBits;
  const std::uint32_t rounded = sum + (0x80U << kExtraBits);
  return static_cast<std::uint8_t>((((rounded >> 8U) + rounded) >> 8U) >> kExtraBits);
}

// `convert("RGB")` of a CMYK picture; ICC profiles are ignored there and here.
std::uint8_t without_ink(std::uint32_t ink, std::uint32_t black) {
  const std::uint32_t light = 255U - black;
  return static_cast<std::uint8_t>(light - divide_by_255(ink * light));
}

std::uint8_t sample(const std::byte* source, std::size_t index, bool wide) {
  if (!wide) {
    return std::to_integer<std::uint8_t>(source[index]);
  }
  std::uint16_t value = 0;
  std::memcpy(&value, source + index * sizeof(value), sizeof(value));
  return static_cast<std::uint8_t>(value >> 8U);
}

void pixel_to_rgb(const std::uint8_t* in, SampleLayout layout, std::uint8_t* out) {
  switch (layout) {
    case SampleLayout::grey:
      std::fill_n(out, kRgb, in[0]);
      return;
    case SampleLayout::grey_alpha:
      std::fill_n(out, kRgb, over_white(in[0], in[1]));
      return;
    case SampleLayout::rgb:
      std::copy_n(in, kRgb, out);
      return;
    case SampleLayout::rgb_alpha:
      for (std::size_t i = 0; i < kRgb; ++i) {
        out[i] = over_white(in[i], in[3]);
      }
      return;
    case SampleLayout::cmyk:
      for (std::size_t i = 0; i < kRgb; ++i) {
        out[i] = without_ink(in[i], in[3]);
      }
      return;
  }
}

}  // namespace

std::size_t channel_count(SampleLayout layout) {
  switch (layout) {
    case SampleLayout::grey:
      return 1;
    case SampleLayout::grey_alpha:
      return 2;
    case SampleLayout::rgb:
      return 3;
    case SampleLayout::rgb_alpha:
    case SampleLayout::cmyk:
      return 4;
  }
  return 0;
}

void to_rgb(std::span<const std::byte> source, SampleLayout layout, bool wide,
            std::span<std::uint8_t> target) {
  constexpr std::size_t kChannelsMax = 4;
  const std::size_t channels = channel_count(layout);
  const std::size_t pixels = target.size() / kRgb;
  SLUICE_CHECK(source.size() == pixels * channels * (wide ? 2 : 1));
  if (layout == SampleLayout::rgb && !wide) {
    std::memcpy(target.data(), source.data(), source.size());
    return;
  }
  std::uint8_t pixel[kChannelsMax] = {};
  for (std::size_t x = 0; x < pixels; ++x) {
    for (std::size_t c = 0; c < channels; ++c) {
      pixel[c] = sample(source.data(), x * channels + c, wide);
    }
    pixel_to_rgb(pixel, layout, target.data() + x * kRgb);
  }
}

// EXIF: the value says where the stored picture's first row and first column belong.
//   1 top left     2 top right     3 bottom right     4 bottom left
//   5 left top     6 right top     7 right bottom     8 left bottom
Orientation::Orientation(int exif_value, PictureSize stored) : size_(stored) {
  const bool known = exif_value >= 1 && exif_value <= 8;
  const int value = known ? exif_value : 1;
  const bool turned = value >= 5;
  if (turned) {
    size_ = {.width = stored.height, .height = stored.width};
  }
  const bool from_right = value == 2 || value == 3 || value == 6 || value == 7;
  const bool from_bottom = value == 3 || value == 4 || value == 7 || value == 8;
  const std::int64_t across = from_right ? -1 : 1;
  const std::int64_t down = from_bottom ? -size_.width : size_.width;
  origin_ =
      (from_right ? size_.width - 1 : 0) + (from_bottom ? (size_.height - 1) * size_.width : 0);
  step_x_ = turned ? down : across;
  step_y_ = turned ? across : down;
}

void Orientation::place_row(std::span<const std::uint8_t> row, std::int64_t y,
                            std::span<std::uint8_t> pixels) const {
  const std::int64_t first = origin_ + y * step_y_;
  if (step_x_ == 1) {
    std::ranges::copy(row, pixels.begin() + first * std::int64_t{kRgb});
    return;
  }
  const auto count = static_cast<std::int64_t>(row.size() / kRgb);
  for (std::int64_t x = 0; x < count; ++x) {
    const std::uint8_t* in = row.data() + x * std::int64_t{kRgb};
    std::copy_n(in, kRgb, pixels.data() + (first + x * step_x_) * std::int64_t{kRgb});
  }
}

}  // namespace sluice
