#include "engine/prefill_pace.h"

#include <algorithm>

namespace sluice {
namespace {

constexpr double kFreshShare = 0.25;      // of a new measurement in a mean
constexpr std::int64_t kRowsGrid = 32;    // what the kernels work on at a time
constexpr std::int64_t kRowsMax = 65536;  // beyond any step

void blend(std::optional<double>& mean, double fresh) {
  mean = mean ? *mean + kFreshShare * (fresh - *mean) : fresh;
}

}  // namespace

std::int64_t PrefillPace::rows() const {
  if (!decode_seconds_ || mixed_steps_ >= kMixedStepsMax) {
    return 0;
  }
  if (!row_seconds_) {
    return kFirstRows;
  }
  const double wanted = (kStretchMax - 1.0) * *decode_seconds_ / *row_seconds_;
  const auto rows = static_cast<std::int64_t>(std::min(wanted, static_cast<double>(kRowsMax)));
  const std::int64_t grid = rows >= kRowsGrid ? kRowsGrid : kFewestRows;
  return std::max(rows / grid * grid, kFewestRows);
}

void PrefillPace::step_done(const StepPlan& plan, double seconds) {
  std::int64_t prompt_rows = 0;
  for (const PlannedRows& rows : plan.rows) {
    prompt_rows += rows.token_count > 1 ? rows.token_count : 0;
  }
  if (prompt_rows == 0) {
    blend(decode_seconds_, seconds);
    mixed_steps_ = 0;
  } else if (prompt_rows < plan.token_count && decode_seconds_) {
    // A clock too coarse to see a difference must not make a row free.
    constexpr double kLeast = 1e-9;
    blend(row_seconds_,
          std::max((seconds - *decode_seconds_) / static_cast<double>(prompt_rows), kLeast));
    ++mixed_steps_;
  }
}

}  // namespace sluice
