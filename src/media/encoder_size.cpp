#include "media/encoder_size.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "request/vision_input.h"

namespace sluice {
namespace {

constexpr std::int64_t kFactor = kVisionPatchSize * kVisionMergeSize;
constexpr std::int64_t kFramesPerGroup = 2;
constexpr std::int64_t kBudgetPixelsMax = std::int64_t{1} << 40;
constexpr std::int64_t kFrameCountMax = std::int64_t{1} << 20;

// round(value / divisor) of Python: halves go to the even neighbour.
std::int64_t divide_rounded(std::int64_t value, std::int64_t divisor) {
  const std::int64_t quotient = value / divisor;
  const std::int64_t twice_rest = 2 * (value % divisor);
  const bool up = twice_rest > divisor || (twice_rest == divisor && quotient % 2 != 0);
  return up ? quotient + 1 : quotient;
}

Result<void> check(PictureSize size, PixelBudget budget) {
  if (size.width < 1 || size.height < 1 || size.width > kPictureSideMax ||
      size.height > kPictureSideMax) {
    return fail(ErrorCode::invalid_argument,
                fmt::format("picture of {} x {} pixels, want sides from 1 to {}", size.width,
                            size.height, kPictureSideMax));
  }
  if (budget.pixels_min < 1 || budget.pixels_max < budget.pixels_min ||
      budget.pixels_max > kBudgetPixelsMax) {
    return fail(ErrorCode::invalid_argument,
                fmt::format("pixel limits from {} to {}, want 1 <= smallest <= largest <= {}",
                            budget.pixels_min, budget.pixels_max, kBudgetPixelsMax));
  }
  return {};
}

Result<void> check_ratio(PictureSize size) {
  const std::int64_t longer = std::max(size.width, size.height);
  const std::int64_t shorter = std::min(size.width, size.height);
  if (longer > kSideRatioMax * shorter) {
    return fail(ErrorCode::invalid_argument,
                fmt::format("picture of {} x {} pixels: one side is more than {} times the other",
                            size.width, size.height, kSideRatioMax));
  }
  return {};
}

// One side divided by `shrink`, down to a multiple of the factor; enlarged by `grow`, up to one.
std::int64_t shrunk(std::int64_t side, double shrink) {
  const double count = std::floor(static_cast<double>(side) / shrink / double{kFactor});
  return std::max(kFactor, static_cast<std::int64_t>(count) * kFactor);
}

std::int64_t grown(std::int64_t side, double grow) {
  const double count = std::ceil(static_cast<double>(side) * grow / double{kFactor});
  return static_cast<std::int64_t>(count) * kFactor;
}

// `rounded_frames` counts for the comparison, `frames` for the scale, as in the reference.
PictureSize fit(PictureSize size, std::int64_t frames, std::int64_t rounded_frames,
                PixelBudget budget) {
  const PictureSize rounded{.width = divide_rounded(size.width, kFactor) * kFactor,
                            .height = divide_rounded(size.height, kFactor) * kFactor};
  const std::int64_t area = rounded_frames * rounded.pixel_count();
  const auto pixels = static_cast<double>(frames * size.pixel_count());
  if (area > budget.pixels_max) {
    const double shrink = std::sqrt(pixels / static_cast<double>(budget.pixels_max));
    return {.width = shrunk(size.width, shrink), .height = shrunk(size.height, shrink)};
  }
  if (area < budget.pixels_min) {
    const double grow = std::sqrt(static_cast<double>(budget.pixels_min) / pixels);
    return {.width = grown(size.width, grow), .height = grown(size.height, grow)};
  }
  return rounded;
}

}  // namespace

Result<PictureSize> encoder_size(PictureSize size, PixelBudget budget) {
  SLUICE_TRY(check(size, budget));
  SLUICE_TRY(check_ratio(size));
  return fit(size, 1, 1, budget);
}

Result<PictureSize> encoder_frame_size(PictureSize size, std::int64_t frame_count,
                                       PixelBudget budget) {
  SLUICE_TRY(check(size, budget));
  if (frame_count < kFramesPerGroup || frame_count > kFrameCountMax) {
    return fail(ErrorCode::invalid_argument,
                fmt::format("video of {} frames, want {} to {}", frame_count, kFramesPerGroup,
                            kFrameCountMax));
  }
  if (size.width < kFactor || size.height < kFactor) {
    const double scale = std::max(double{kFactor} / static_cast<double>(size.height),
                                  double{kFactor} / static_cast<double>(size.width));
    size = {.width = static_cast<std::int64_t>(static_cast<double>(size.width) * scale),
            .height = static_cast<std::int64_t>(static_cast<double>(size.height) * scale)};
  }
  SLUICE_TRY(check_ratio(size));
  const std::int64_t rounded_frames =
      divide_rounded(frame_count, kFramesPerGroup) * kFramesPerGroup;
  return fit(size, frame_count, rounded_frames, budget);
}

}  // namespace sluice
