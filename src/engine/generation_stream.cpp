#include "engine/generation_stream.h"

#include <utility>

#include "base/check.h"

namespace sluice {

EventQueue::EventQueue(std::int64_t tokens_max, std::function<void()> on_ready)
    : on_ready_(std::move(on_ready)) {
  tokens_.reserve(static_cast<std::size_t>(tokens_max));
}

void EventQueue::publish(StepEvents events) {
  const bool last = events.finished.has_value();
  {
    const std::scoped_lock lock(mutex_);
    SLUICE_CHECK(!finished_);
    if (!admitted_) {
      admitted_ = events.admitted;
    }
    if (events.scored) {
      scored_ = std::move(events.scored);
    }
    if (events.token) {
      SLUICE_CHECK(tokens_.size() < tokens_.capacity());
      tokens_.push_back(std::move(*events.token));
    }
    finished_ = std::move(events.finished);
  }
  ready_.notify_all();
  call_on_ready(last);
}

// `last`: no event follows, so whatever on_ready_ holds on to can go.
void EventQueue::call_on_ready(bool last) {
  std::function<void()> expired;  // destroyed outside the lock: its captures may be anything
  {
    const std::scoped_lock lock(callback_mutex_);
    if (on_ready_) {
      callback_thread_.store(std::this_thread::get_id(), std::memory_order_relaxed);
      on_ready_();
      callback_thread_.store(std::thread::id(), std::memory_order_relaxed);
    }
    // A reader that dropped its stream inside on_ready could not take the function away itself.
    if (last || detached_.load(std::memory_order_relaxed)) {
      expired = std::exchange(on_ready_, nullptr);
    }
  }
}

std::optional<GenerationEvent> EventQueue::try_next() {
  const std::scoped_lock lock(mutex_);
  if (!has_event()) {
    return std::nullopt;
  }
  return pop();
}

GenerationEvent EventQueue::next() {
  std::unique_lock lock(mutex_);
  SLUICE_CHECK(!finished_read_);
  ready_.wait(lock, [this] { return has_event(); });
  return pop();
}

bool EventQueue::has_event() const {
  return (admitted_ && !admitted_read_) || scored_ || read_count_ < tokens_.size() ||
         (finished_ && !finished_read_);
}

GenerationEvent EventQueue::pop() {
  if (admitted_ && !admitted_read_) {
    admitted_read_ = true;
    return *admitted_;
  }
  if (scored_) {
    return *std::exchange(scored_, std::nullopt);
  }
  if (read_count_ < tokens_.size()) {
    return std::move(tokens_[read_count_++]);
  }
  finished_read_ = true;
  return *finished_;
}

void EventQueue::detach() {
  cancel();
  detached_.store(true, std::memory_order_relaxed);
  if (callback_thread_.load(std::memory_order_relaxed) == std::this_thread::get_id()) {
    return;  // inside on_ready: call_on_ready() holds the lock and drops the function
  }
  std::function<void()> expired;
  const std::scoped_lock lock(callback_mutex_);
  expired = std::exchange(on_ready_, nullptr);
}

}  // namespace sluice
