// The only way of sequences and commands to the engine thread, and of the engine's status back.
//
// Bounded: at most outstanding_max sequences are submitted and not yet finished, so that every list
// of the engine can be reserved at start; and kCommandsMax commands wait.
//
// Thread rule: push(), stop() and status() from any thread; take() and publish() from the engine
// thread.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "engine/engine.h"
#include "engine/engine_command.h"
#include "engine/sequence.h"

namespace sluice {

class SubmissionQueue {
 public:
  static constexpr std::size_t kCommandsMax = 64;

  struct Arrivals {
    std::vector<std::unique_ptr<Sequence>> sequences;      // reserved for outstanding_max
    std::vector<std::unique_ptr<EngineCommand>> commands;  // reserved for kCommandsMax
  };

  explicit SubmissionQueue(std::int64_t outstanding_max);
  static Arrivals make_arrivals(std::int64_t outstanding_max);  // empty, reserved

  // Gives the sequence its id. Error resource_exhausted when the queue is full.
  Result<void> push(std::unique_ptr<Sequence> sequence);

  // Errors: resource_exhausted (kCommandsMax wait already), cancelled (stop() was called).
  Result<void> push(std::unique_ptr<EngineCommand> command);

  // Moves what has arrived to `arrivals` (empty, reserved). With `wait`, first waits until
  // something arrives, or for the time `wait_end` if there is one. False once stop() was called.
  bool take(Arrivals& arrivals, bool wait, std::optional<Clock::TimePoint> wait_end = std::nullopt);

  // The engine's numbers after a step in which so many sequences ended.
  void publish(const EngineStatus& status, std::int64_t ended_count);

  void stop();

  EngineStatus status() const;

 private:
  const std::int64_t outstanding_max_;

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  Arrivals arrivals_;
  std::int64_t outstanding_ = 0;  // submitted and not ended
  SequenceId next_id_ = 1;
  EngineStatus status_;  // as of the last step; waiting is derived
  bool stopping_ = false;
};

}  // namespace sluice
