#include "engine/submission_queue.h"

#include <string>
#include <utility>

#include "base/check.h"

namespace sluice {

SubmissionQueue::SubmissionQueue(std::int64_t outstanding_max)
    : outstanding_max_(outstanding_max), arrivals_(make_arrivals(outstanding_max)) {}

SubmissionQueue::Arrivals SubmissionQueue::make_arrivals(std::int64_t outstanding_max) {
  Arrivals arrivals;
  arrivals.sequences.reserve(static_cast<std::size_t>(outstanding_max));
  arrivals.commands.reserve(kCommandsMax);
  return arrivals;
}

Result<void> SubmissionQueue::push(std::unique_ptr<Sequence> sequence) {
  {
    const std::scoped_lock lock(mutex_);
    if (outstanding_ >= outstanding_max_) {
      return fail(ErrorCode::resource_exhausted,
                  "the queue is full: " + std::to_string(outstanding_) +
                      " requests run or wait, the limit is " + std::to_string(outstanding_max_) +
                      "; try again when one has ended");
    }
    ++outstanding_;
    sequence->id = next_id_++;
    arrivals_.sequences.push_back(std::move(sequence));
  }
  changed_.notify_one();
  return {};
}

Result<void> SubmissionQueue::push(std::unique_ptr<EngineCommand> command) {
  {
    const std::scoped_lock lock(mutex_);
    if (stopping_) {
      return fail(ErrorCode::cancelled, "the engine is stopping");
    }
    if (arrivals_.commands.size() >= kCommandsMax) {
      return fail(ErrorCode::resource_exhausted,
                  std::to_string(kCommandsMax) + " commands wait for the engine already");
    }
    arrivals_.commands.push_back(std::move(command));
  }
  changed_.notify_one();
  return {};
}

bool SubmissionQueue::take(Arrivals& arrivals, bool wait,
                           std::optional<Clock::TimePoint> wait_end) {
  SLUICE_CHECK(arrivals.sequences.empty());
  SLUICE_CHECK(arrivals.commands.empty());
  std::unique_lock lock(mutex_);
  const auto has_news = [this] {
    return stopping_ || !arrivals_.sequences.empty() || !arrivals_.commands.empty();
  };
  if (wait && wait_end) {
    changed_.wait_until(lock, *wait_end, has_news);
  } else if (wait) {
    changed_.wait(lock, has_news);
  }
  std::swap(arrivals, arrivals_);
  return !stopping_;
}

void SubmissionQueue::publish(const EngineStatus& status, std::int64_t ended_count) {
  const std::scoped_lock lock(mutex_);
  status_ = status;
  outstanding_ -= ended_count;
  SLUICE_CHECK(outstanding_ >= 0);
}

void SubmissionQueue::stop() {
  {
    const std::scoped_lock lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_one();
}

EngineStatus SubmissionQueue::status() const {
  const std::scoped_lock lock(mutex_);
  EngineStatus status = status_;
  status.waiting = outstanding_ - status.running;
  return status;
}

}  // namespace sluice
