// The events of one request on their way from the engine thread to its reader.
//
// EventQueue is shared by both sides; StreamHandle is what the caller of submit() holds. The queue
// has room for every token the request may get, reserved at submit(), so a slow reader never holds
// up the engine and the engine never allocates for it.
//
// Thread rule: publish() and is_cancelled() from the engine thread, the rest from any thread.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "engine/engine.h"

namespace sluice {

// What one step has to tell the reader of one request, in this order.
struct StepEvents {
  std::optional<GenerationAdmitted> admitted = std::nullopt;
  std::optional<PromptScored> scored = std::nullopt;
  std::optional<TokenEvent> token = std::nullopt;
  std::optional<GenerationFinished> finished = std::nullopt;
};

class EventQueue {
 public:
  // Throws std::bad_alloc; called by make_sequence() alone, which catches it.
  EventQueue(std::int64_t tokens_max, std::function<void()> on_ready);

  // Engine side: adds what is given and wakes the reader. After `finished` nothing may follow.
  void publish(StepEvents events);
  bool is_cancelled() const { return cancelled_.load(std::memory_order_relaxed); }

  // Reader side; see GenerationStream.
  std::optional<GenerationEvent> try_next();
  GenerationEvent next();
  void cancel() { cancelled_.store(true, std::memory_order_relaxed); }

  // The reader is gone: cancels, and on_ready is not running and never runs again when this
  // returns (unless called from on_ready itself).
  void detach();

 private:
  bool has_event() const;
  GenerationEvent pop();
  void call_on_ready(bool last);

  std::atomic<bool> cancelled_{false};
  std::atomic<bool> detached_{false};

  std::mutex mutex_;  // guards the events
  std::condition_variable ready_;
  std::optional<GenerationAdmitted> admitted_;
  bool admitted_read_ = false;
  std::optional<PromptScored> scored_;  // until it is read
  std::vector<TokenEvent> tokens_;      // reserved for tokens_max
  std::size_t read_count_ = 0;          // tokens already handed to the reader
  std::optional<GenerationFinished> finished_;
  bool finished_read_ = false;

  std::mutex callback_mutex_;  // held while on_ready_ runs; never together with mutex_
  std::function<void()> on_ready_;
  std::atomic<std::thread::id> callback_thread_{};
};

class StreamHandle final : public GenerationStream {
 public:
  explicit StreamHandle(std::shared_ptr<EventQueue> events) : events_(std::move(events)) {}
  ~StreamHandle() override { events_->detach(); }
  StreamHandle(const StreamHandle&) = delete;
  StreamHandle& operator=(const StreamHandle&) = delete;

  std::optional<GenerationEvent> try_next() override { return events_->try_next(); }
  GenerationEvent next() override { return events_->next(); }
  void cancel() override { events_->cancel(); }

 private:
  std::shared_ptr<EventQueue> events_;
};

}  // namespace sluice
