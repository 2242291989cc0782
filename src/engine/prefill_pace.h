// How many prompt rows a step may have beside running answers, measured: as many as stretch the
// time between two tokens to kStretchMax of what it is without them. Only speed follows from it,
// never a bit of an answer.
//
// What decoding alone takes is measured in steps without prompt rows; while prompts keep coming,
// one of kMixedStepsMax is such a step. A prompt row costs what mixed steps take beyond that. Both
// are fading means, since contexts grow and answers join and leave.
//
// Thread rule: one owner (the engine thread).
#pragma once

#include <cstdint>
#include <optional>

#include "scheduler/step_plan.h"

namespace sluice {

class PrefillPace {
 public:
  static constexpr double kStretchMax = 2.5;
  static constexpr std::int64_t kFirstRows = 32;  // until a mixed step was measured
  static constexpr std::int64_t kFewestRows = 8;
  static constexpr std::int64_t kMixedStepsMax = 64;

  // For the next step; 0: it should measure decoding alone.
  std::int64_t rows() const;

  void step_done(const StepPlan& plan, double seconds);

 private:
  std::optional<double> decode_seconds_;  // of a step without prompt rows
  std::optional<double> row_seconds_;     // of one prompt row
  std::int64_t mixed_steps_ = 0;          // since decode_seconds_ was measured
};

}  // namespace sluice
