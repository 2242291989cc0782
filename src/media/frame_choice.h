// Which frames of a video are kept, and the times that the prompt tells: the rules of transformers'
// `Qwen3VLVideoProcessor.sample_frames` and `Qwen3VLProcessor._calculate_timestamps`. Pure
// functions.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"

namespace sluice {

inline constexpr std::int64_t kFramesPerGroup = 2;     // that the encoder takes together
inline constexpr double kFrameRateWhenUnknown = 24.0;  // of the source, as in the reference

struct FrameSource {
  std::int64_t frame_count = 0;
  double frames_per_second = kFrameRateWhenUnknown;
};

// How many are wanted: at a rate, but within bounds.
struct FrameRule {
  double frames_per_second = 2.0;
  std::int64_t frames_min = 4;
  std::int64_t frames_max = 768;
};

// Indices from 0 to frame_count - 1, ascending, evenly spread from the first to the last frame; all
// of them when there are no more than frames_min. Errors: invalid_argument (no frames, a rate that
// is none, or bounds that are none).
Result<std::vector<std::int64_t>> choose_frames(FrameSource source, const FrameRule& rule);

// The time of each group of two frames (the last one counts twice when their number is odd): the
// mean of theirs, in seconds. `source_rate` is above 0.
std::vector<double> group_seconds(std::span<const std::int64_t> frames, double source_rate);

// "<0.2 seconds>", which precedes a group in the prompt. Rounded as Python's "%.1f".
std::string seconds_text(double seconds);

}  // namespace sluice
