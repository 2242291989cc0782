#include "media/frame_choice.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/checked_math.h"

namespace sluice {
namespace {

constexpr std::int64_t kSourceFramesMax = std::int64_t{1} << 40;
constexpr std::int64_t kKeptFramesMax = std::int64_t{1} << 20;
constexpr double kRateMin = 1e-3;
constexpr double kRateMax = 1e4;

Result<void> check_rate(std::string_view what, double rate) {
  if (!(rate >= kRateMin && rate <= kRateMax)) {  // NaN is refused, too
    return fail(ErrorCode::invalid_argument, fmt::format("{} of {} frames a second, want {} to {}",
                                                         what, rate, kRateMin, kRateMax));
  }
  return {};
}

// As NumPy's rint: halves to even, in the mode that the process has by default.
std::int64_t round_half_even(double value) {
  return static_cast<std::int64_t>(std::nearbyint(value));
}

}  // namespace

Result<std::vector<std::int64_t>> choose_frames(FrameSource source, const FrameRule& rule) {
  if (source.frame_count < 1 || source.frame_count > kSourceFramesMax) {
    return fail(ErrorCode::invalid_argument, fmt::format("video of {} frames, want 1 to {}",
                                                         source.frame_count, kSourceFramesMax));
  }
  SLUICE_TRY(check_rate("video", source.frames_per_second));
  SLUICE_TRY(check_rate("sampling", rule.frames_per_second));
  if (rule.frames_min < 1 || rule.frames_max < rule.frames_min ||
      rule.frames_max > kKeptFramesMax) {
    return fail(ErrorCode::invalid_argument,
                fmt::format("sampling of {} to {} frames, want 1 <= fewest <= most <= {}",
                            rule.frames_min, rule.frames_max, kKeptFramesMax));
  }
  const double wanted =
      static_cast<double>(source.frame_count) / source.frames_per_second * rule.frames_per_second;
  std::int64_t count = static_cast<std::int64_t>(wanted);
  count = std::min({std::max(count, rule.frames_min), rule.frames_max, source.frame_count});
  // NumPy's linspace: index times step, the last one exact.
  const auto last = static_cast<double>(source.frame_count - 1);
  const double step = count > 1 ? last / static_cast<double>(count - 1) : 0.0;
  std::vector<std::int64_t> frames;
  for (std::int64_t i = 0; i < count; ++i) {
    const bool is_last = count > 1 && i == count - 1;
    frames.push_back(round_half_even(is_last ? last : static_cast<double>(i) * step));
  }
  return frames;
}

std::vector<double> group_seconds(std::span<const std::int64_t> frames, double source_rate) {
  const std::size_t groups = ceil_div(frames.size(), std::size_t{kFramesPerGroup});
  std::vector<double> seconds;
  for (std::size_t group = 0; group < groups; ++group) {
    const std::size_t first = group * kFramesPerGroup;
    const std::size_t second = std::min(first + 1, frames.size() - 1);
    const double first_time = static_cast<double>(frames[first]) / source_rate;
    const double second_time = static_cast<double>(frames[second]) / source_rate;
    seconds.push_back((first_time + second_time) / 2.0);
  }
  return seconds;
}

std::string seconds_text(double seconds) {
  return fmt::format("<{:.1f} seconds>", seconds);
}

}  // namespace sluice
