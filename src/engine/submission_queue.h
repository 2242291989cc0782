// The only way from submit() to the engine thread, and of the engine's status back.
//
// Bounded: at most outstanding_max sequences are submitted and not yet finished, so that every list
// of the engine can be reserved at start.
//
// Thread rule: push(), stop() and status() from any thread; take() and publish() from the engine
// thread.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "base/result.h"
#include "engine/engine.h"
#include "engine/sequence.h"

namespace sluice {

class SubmissionQueue {
 public:
  explicit SubmissionQueue(std::int64_t outstanding_max);

  // Gives the sequence its id. Error resource_exhausted when the queue is full.
  Result<void> push(std::unique_ptr<Sequence> sequence);

  // Moves what has arrived to `arrivals` (empty, reserved for outstanding_max). With `wait`, first
  // waits until something arrives. False once stop() was called.
  bool take(std::vector<std::unique_ptr<Sequence>>& arrivals, bool wait);

  // The engine's numbers after a step in which so many sequences ended.
  void publish(const EngineStatus& status, std::int64_t ended_count);

  void stop();

  EngineStatus status() const;

 private:
  const std::int64_t outstanding_max_;

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::unique_ptr<Sequence>> arrivals_;  // reserved for outstanding_max_
  std::int64_t outstanding_ = 0;                     // submitted and not ended
  SequenceId next_id_ = 1;
  EngineStatus status_;  // as of the last step; waiting is derived
  bool stopping_ = false;
};

}  // namespace sluice
