// The weights are computed in double precision, then rounded to fixed point: 32 bits less 8 for the
// value of a pixel and 2 for the lobes, so that sums of products stay inside int32.
#include "media/resize.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/check.h"

namespace sluice {
namespace {

constexpr int kFractionBits = 32 - 8 - 2;
constexpr std::int32_t kHalf = std::int32_t{1} << (kFractionBits - 1);
constexpr double kSupport = 2.0;  // of the bicubic kernel, in pixels of the coarser grid
constexpr std::size_t kChannels = 3;

// What the pixels of one output line are made of: pixel `i` sums weights[i * stride + j] times
// input first[i] + j, for j below count[i].
struct Taps {
  std::vector<std::size_t> first;
  std::vector<std::size_t> count;
  std::vector<std::int32_t> weights;
  std::size_t stride = 0;
};

// Keys' cubic convolution kernel with a = -0.5.
double cubic(double x) {
  constexpr double kA = -0.5;
  x = std::abs(x);
  if (x < 1.0) {
    return ((kA + 2.0) * x - (kA + 3.0)) * x * x + 1.0;
  }
  if (x < 2.0) {
    return (((x - 5.0) * x + 8.0) * x - 4.0) * kA;
  }
  return 0.0;
}

// Half away from zero, by truncation.
std::int32_t to_fixed(double weight) {
  const double scaled = weight * static_cast<double>(std::int32_t{1} << kFractionBits);
  return static_cast<std::int32_t>(weight < 0 ? scaled - 0.5 : scaled + 0.5);
}

Taps make_taps(std::int64_t input_count, std::int64_t output_count) {
  const double scale = static_cast<double>(input_count) / static_cast<double>(output_count);
  const double widening = std::max(scale, 1.0);
  const double support = kSupport * widening;
  const double inverse = 1.0 / widening;
  Taps taps;
  taps.stride = static_cast<std::size_t>(std::ceil(support)) * 2 + 1;
  taps.weights.resize(static_cast<std::size_t>(output_count) * taps.stride);
  std::vector<double> line(taps.stride);
  for (std::int64_t i = 0; i < output_count; ++i) {
    const double centre = (static_cast<double>(i) + 0.5) * scale;
    const double low = centre - support + 0.5;  // cut, not rounded: as Pillow does
    const double high = centre + support + 0.5;
    const auto first = std::max(std::int64_t{0}, static_cast<std::int64_t>(low));
    const auto end = std::min(input_count, static_cast<std::int64_t>(high));
    const auto count = static_cast<std::size_t>(end - first);
    double sum = 0.0;
    for (std::size_t j = 0; j < count; ++j) {
      line[j] =
          cubic((static_cast<double>(j) + static_cast<double>(first) - centre + 0.5) * inverse);
      sum += line[j];
    }
    std::int32_t* weights = taps.weights.data() + static_cast<std::size_t>(i) * taps.stride;
    for (std::size_t j = 0; j < count; ++j) {
      weights[j] = to_fixed(sum == 0.0 ? line[j] : line[j] / sum);
    }
    taps.first.push_back(static_cast<std::size_t>(first));
    taps.count.push_back(count);
  }
  return taps;
}

std::uint8_t to_byte(std::int32_t sum) {
  return static_cast<std::uint8_t>(std::clamp(sum >> kFractionBits, 0, 255));
}

Picture resize_rows(const Picture& source, std::int64_t width) {
  const Taps taps = make_taps(source.size.width, width);
  Picture result{.size = {.width = width, .height = source.size.height}, .pixels = {}};
  result.pixels.resize(static_cast<std::size_t>(result.size.pixel_count()) * kChannels);
  const std::size_t row_bytes = static_cast<std::size_t>(source.size.width) * kChannels;
  std::uint8_t* out = result.pixels.data();
  for (std::int64_t y = 0; y < source.size.height; ++y) {
    const std::uint8_t* row = source.pixels.data() + static_cast<std::size_t>(y) * row_bytes;
    for (std::size_t x = 0; x < static_cast<std::size_t>(width); ++x) {
      const std::int32_t* weights = taps.weights.data() + x * taps.stride;
      const std::uint8_t* pixel = row + taps.first[x] * kChannels;
      std::int32_t red = kHalf;
      std::int32_t green = kHalf;
      std::int32_t blue = kHalf;
      for (std::size_t j = 0; j < taps.count[x]; ++j, pixel += kChannels) {
        red += weights[j] * pixel[0];
        green += weights[j] * pixel[1];
        blue += weights[j] * pixel[2];
      }
      *out++ = to_byte(red);
      *out++ = to_byte(green);
      *out++ = to_byte(blue);
    }
  }
  return result;
}

// Whole rows at a time: the inner loop runs along memory.
Picture resize_columns(const Picture& source, std::int64_t height) {
  const Taps taps = make_taps(source.size.height, height);
  Picture result{.size = {.width = source.size.width, .height = height}, .pixels = {}};
  result.pixels.resize(static_cast<std::size_t>(result.size.pixel_count()) * kChannels);
  const std::size_t row_bytes = static_cast<std::size_t>(source.size.width) * kChannels;
  std::vector<std::int32_t> sums(row_bytes);
  for (std::size_t y = 0; y < static_cast<std::size_t>(height); ++y) {
    std::ranges::fill(sums, kHalf);
    for (std::size_t j = 0; j < taps.count[y]; ++j) {
      const std::int32_t weight = taps.weights[y * taps.stride + j];
      const std::uint8_t* row = source.pixels.data() + (taps.first[y] + j) * row_bytes;
      for (std::size_t x = 0; x < row_bytes; ++x) {
        sums[x] += weight * row[x];
      }
    }
    std::ranges::transform(sums, result.pixels.begin() + static_cast<std::ptrdiff_t>(y * row_bytes),
                           to_byte);
  }
  return result;
}

void check_size(PictureSize size) {
  SLUICE_CHECK(size.width >= 1 && size.width <= kPictureSideMax);
  SLUICE_CHECK(size.height >= 1 && size.height <= kPictureSideMax);
}

}  // namespace

Picture resize(const Picture& source, PictureSize size) {
  check_size(source.size);
  check_size(size);
  SLUICE_CHECK(source.pixels.size() ==
               static_cast<std::size_t>(source.size.pixel_count()) * kChannels);
  if (size == source.size) {
    return source;
  }
  if (size.width == source.size.width) {
    return resize_columns(source, size.height);
  }
  Picture rows = resize_rows(source, size.width);
  return size.height == rows.size.height ? rows : resize_columns(rows, size.height);
}

}  // namespace sluice
