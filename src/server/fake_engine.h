// For tests: an engine without a model. Every request gets the tokens of a script, one after the
// other on a thread of its own, like the real one; tests can make it wait, fail, or be full.
// Longer than 200 lines: a fake of everything an engine does, in one header.
#pragma once

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "engine/engine.h"

namespace sluice {

struct FakeScript {
  std::vector<TokenId> tokens = {};           // said in turn; then the end
  bool endless = false;                       // said again and again, until tokens_max or cancelled
  std::chrono::milliseconds pause{0};         // before each token
  std::chrono::milliseconds queue_pause{0};   // before the admission
  std::chrono::milliseconds first_pause{0};   // after it, before the first token
  std::optional<Error> error = std::nullopt;  // instead of the end
  float logprob = -0.5F;
  std::int64_t cached_tokens = 0;
  std::optional<Error> pin_error = std::nullopt;  // instead of pinning
};

class FakeEngine final : public Engine {
 public:
  explicit FakeEngine(EngineConfig config) : config_(config) {}
  ~FakeEngine() override {
    stopping_.store(true);
    for (std::thread& thread : threads_) {
      thread.join();
    }
  }

  void set_script(FakeScript script) {
    const std::lock_guard lock(mutex_);
    script_ = std::move(script);
  }
  void refuse_with(std::optional<Error> error) {
    const std::lock_guard lock(mutex_);
    refusal_ = std::move(error);
  }

  // Requests after the server's own first one.
  std::vector<Request> requests() const {
    const std::lock_guard lock(mutex_);
    return requests_;
  }
  int running() const { return running_.load(); }

  Result<std::shared_ptr<GenerationStream>> submit(Request request,
                                                   std::function<void()> on_ready) override;
  EngineStatus status() const override {
    EngineStatus status;
    status.running = running_.load();
    const std::lock_guard lock(mutex_);
    status.pinned_prefixes = std::ssize(pins_);
    return status;
  }
  // Frees as many tokens as bytes: 64 for everything, 1 for each salt.
  Result<void> flush_cache(CacheFlush what,
                           std::function<void(const CacheFlushed&)> on_done) override {
    {
      const std::lock_guard lock(mutex_);
      if (refusal_) {
        return std::unexpected(*refusal_);
      }
      flushes_.push_back(what);
    }
    const std::size_t freed = what.salts ? what.salts->size() : 64;
    on_done({.tokens = static_cast<std::int64_t>(freed), .bytes = freed});
    return {};
  }
  Result<void> list_pins(std::function<void(const std::vector<PinnedPrefix>&)> on_done) override {
    std::vector<PinnedPrefix> list;
    {
      const std::lock_guard lock(mutex_);
      if (refusal_) {
        return std::unexpected(*refusal_);
      }
      for (const auto& [request, pin] : pins_) {
        list.push_back(pin);
      }
    }
    on_done(list);
    return {};
  }
  Result<void> unpin(std::string id, std::function<void(const bool&)> on_done) override {
    std::size_t gone = 0;
    {
      const std::lock_guard lock(mutex_);
      gone = std::erase_if(pins_, [&id](const auto& entry) { return entry.second.id == id; });
    }
    on_done(gone > 0);
    return {};
  }
  // Either moves 128 tokens in 128 bytes and 1.5 ms.
  Result<void> save_cache(CacheFile file,
                          std::function<void(const Result<CacheTransfer>&)> on_done) override {
    return move_cache(std::move(file), on_done);
  }
  Result<void> load_cache(CacheFile file,
                          std::function<void(const Result<CacheTransfer>&)> on_done) override {
    return move_cache(std::move(file), on_done);
  }
  void move_fails_with(std::optional<Error> error) {
    const std::lock_guard lock(mutex_);
    move_error_ = std::move(error);
  }
  std::vector<CacheFile> moved_files() const {
    const std::lock_guard lock(mutex_);
    return moved_files_;
  }
  std::vector<CacheFlush> flushes() const {
    const std::lock_guard lock(mutex_);
    return flushes_;
  }
  const EngineConfig& config() const override { return config_; }

 private:
  struct Shared {
    std::mutex mutex;  // guards events; callback_mutex is held while on_ready runs
    std::mutex callback_mutex;
    std::deque<GenerationEvent> events;
    std::function<void()> on_ready;
    std::atomic<bool> cancelled{false};

    void push(GenerationEvent event) {
      {
        const std::lock_guard lock(mutex);
        events.push_back(std::move(event));
      }
      const std::lock_guard lock(callback_mutex);
      if (on_ready) {
        on_ready();
      }
    }
  };

  class Stream final : public GenerationStream {
   public:
    explicit Stream(std::shared_ptr<Shared> shared) : shared_(std::move(shared)) {}
    ~Stream() override {
      cancel();
      const std::lock_guard lock(shared_->callback_mutex);
      shared_->on_ready = {};
    }
    std::optional<GenerationEvent> try_next() override {
      const std::lock_guard lock(shared_->mutex);
      if (shared_->events.empty()) {
        return std::nullopt;
      }
      GenerationEvent event = std::move(shared_->events.front());
      shared_->events.pop_front();
      return event;
    }
    GenerationEvent next() override {
      while (true) {
        if (auto event = try_next()) {
          return std::move(*event);
        }
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
      }
    }
    void cancel() override { shared_->cancelled.store(true); }

   private:
    std::shared_ptr<Shared> shared_;
  };

  Result<void> move_cache(CacheFile file,
                          const std::function<void(const Result<CacheTransfer>&)>& on_done) {
    std::optional<Error> error;
    {
      const std::lock_guard lock(mutex_);
      if (refusal_) {
        return std::unexpected(*refusal_);
      }
      moved_files_.push_back(std::move(file));
      error = move_error_;
    }
    on_done(error ? Result<CacheTransfer>(std::unexpected(*error))
                  : CacheTransfer{.tokens = 128, .bytes = 128, .seconds = 0.0015});
    return {};
  }
  GenerationFinished pin(const Request& request);
  void generate(const Request& request, const FakeScript& script, Shared& shared);
  bool wait(std::chrono::milliseconds time, const Shared& shared) const;

  EngineConfig config_;
  mutable std::mutex mutex_;
  FakeScript script_;
  std::optional<Error> refusal_;
  std::vector<Request> requests_;
  std::vector<CacheFlush> flushes_;
  std::vector<CacheFile> moved_files_;
  std::optional<Error> move_error_;
  std::vector<std::pair<Request, PinnedPrefix>> pins_;
  std::vector<std::thread> threads_;
  std::atomic<int> running_{0};
  std::atomic<bool> stopping_{false};
};

inline Result<std::shared_ptr<GenerationStream>> FakeEngine::submit(
    Request request, std::function<void()> on_ready) {
  const std::lock_guard lock(mutex_);
  auto shared = std::make_shared<Shared>();
  shared->on_ready = std::move(on_ready);
  if (request.id == "readiness") {
    shared->push(GenerationFinished{.reason = FinishReason::length});
    return std::make_shared<Stream>(shared);
  }
  if (refusal_) {
    return std::unexpected(*refusal_);
  }
  requests_.push_back(request);
  if (request.pin) {
    shared->push(pin(request));
    return std::make_shared<Stream>(shared);
  }
  running_.fetch_add(1);
  threads_.emplace_back([this, shared, request = std::move(request), script = script_] {
    generate(request, script, *shared);
    running_.fetch_sub(1);
  });
  return std::make_shared<Stream>(shared);
}

// Takes a byte for each token.
inline GenerationFinished FakeEngine::pin(const Request& request) {
  if (script_.pin_error) {
    return {.reason = FinishReason::error, .error = script_.pin_error};
  }
  const auto known = std::ranges::find_if(pins_, [&request](const auto& entry) {
    return entry.first.token_ids == request.token_ids &&
           entry.first.cache_salt == request.cache_salt;
  });
  if (known != pins_.end()) {
    known->second.name = request.pin->name;
    return {.reason = FinishReason::length,
            .pinned = PromptPinned{.prefix = known->second, .is_new = false}};
  }
  PinnedPrefix made{.id = request.pin->id,
                    .name = request.pin->name,
                    .tokens = std::ssize(request.token_ids),
                    .bytes = request.token_ids.size()};
  if (request.pin->seconds) {
    made.ends_at = std::chrono::steady_clock::now() +
                   std::chrono::seconds(static_cast<std::int64_t>(*request.pin->seconds));
  }
  pins_.emplace_back(request, made);
  return {.reason = FinishReason::length, .pinned = PromptPinned{.prefix = made}};
}

inline void FakeEngine::generate(const Request& request, const FakeScript& script, Shared& shared) {
  GenerationFinished end;
  end.usage.prompt_tokens = std::ssize(request.token_ids);
  bool alive = wait(script.queue_pause, shared);
  if (alive) {
    shared.push(GenerationAdmitted{.cached_tokens = script.cached_tokens});
    end.usage.cached_tokens = script.cached_tokens;
    alive = wait(script.first_pause, shared);
  }
  std::size_t at = 0;
  while (alive && end.usage.completion_tokens < request.stop.tokens_max &&
         (at < script.tokens.size() || (script.endless && !script.tokens.empty()))) {
    alive = wait(script.pause, shared);
    TokenEvent token;
    token.token_id = script.tokens[at % script.tokens.size()];
    if (request.sampling.logprobs >= 0) {
      token.logprob = script.logprob;
    }
    ++at;
    end.usage.completion_tokens += 1;
    shared.push(token);
  }
  const bool cut = end.usage.completion_tokens >= request.stop.tokens_max;
  end.reason = !alive ? FinishReason::cancelled : cut ? FinishReason::length : FinishReason::stop;
  if (alive && script.error) {
    end.reason = FinishReason::error;
    end.error = script.error;
  }
  shared.push(end);
}

// False when the request was cancelled.
inline bool FakeEngine::wait(std::chrono::milliseconds time, const Shared& shared) const {
  const auto end = std::chrono::steady_clock::now() + time;
  do {
    if (shared.cancelled.load() || stopping_.load()) {
      return false;
    }
    const auto left = end - std::chrono::steady_clock::now();
    std::this_thread::sleep_for(std::clamp<std::chrono::nanoseconds>(
        left, std::chrono::nanoseconds(0), std::chrono::milliseconds(2)));
  } while (std::chrono::steady_clock::now() < end);
  return true;
}

}  // namespace sluice
