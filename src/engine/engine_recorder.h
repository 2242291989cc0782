// Keeps the EngineMetrics: the loop says what happens, this decides what it counts as. Sequences
// with counted == false leave no trace.
//
// Thread rule: one owner (the engine thread). Nothing here allocates.
#pragma once

#include <span>

#include "base/clock.h"
#include "engine/engine_metrics.h"
#include "engine/sequence.h"
#include "scheduler/step_plan.h"

namespace sluice {

class EngineRecorder {
 public:
  // The prompt was looked up for the first time; sequence.reuse says what was found.
  void looked_up(const Sequence& sequence);

  void begin_step(const StepPlan& plan, std::span<Sequence* const> planned, Clock::TimePoint now);
  void end_step(Clock::TimePoint now);

  // A token was appended to the answer. Keeps its time in the sequence.
  void token_chosen(Sequence& sequence, Clock::TimePoint now);
  void finished(const Sequence& sequence, Clock::TimePoint now);

  void flushed(const CacheFreed& freed);
  void saved(const Result<CacheTransfer>& transfer);
  void loaded(const Result<CacheTransfer>& transfer);

  const EngineMetrics& metrics() const { return metrics_; }

 private:
  EngineMetrics metrics_;
  Clock::TimePoint step_began_;
  std::int64_t step_tokens_ = 0;  // counted ones of the current step; 0 outside of one
};

}  // namespace sluice
