// Engine: the loop on a thread of its own behind a bounded queue.
#include "engine/engine.h"

#include <system_error>
#include <thread>
#include <utility>

#include "base/clock.h"
#include "engine/engine_command.h"
#include "engine/engine_loop.h"
#include "engine/generation_stream.h"
#include "engine/sequence.h"
#include "engine/submission_queue.h"
#include "platform/float_mode.h"

namespace sluice {
namespace {

template <class Outcome>
class LoopCommand final : public EngineCommand {
 public:
  LoopCommand(std::function<Outcome(EngineLoop&)> action,
              std::function<void(const Outcome&)> on_done)
      : action_(std::move(action)), on_done_(std::move(on_done)) {}

  void run(EngineLoop& loop) override { outcome_ = action_(loop); }
  void done() override { on_done_(outcome_); }

 private:
  std::function<Outcome(EngineLoop&)> action_;
  std::function<void(const Outcome&)> on_done_;
  Outcome outcome_{};
};

class ThreadedEngine final : public Engine {
 public:
  ThreadedEngine(const EngineConfig& config, const SequenceLimits& limits,
                 std::unique_ptr<SteadyClock> clock, std::unique_ptr<EngineLoop> loop)
      : config_(config),
        limits_(limits),
        clock_(std::move(clock)),
        loop_(std::move(loop)),
        submissions_(config.sequences_max + config.queue_max) {
    submissions_.publish(loop_->status(), 0);
    thread_ = std::thread([this] { run(); });
  }

  ~ThreadedEngine() override {
    submissions_.stop();
    thread_.join();
  }

  Result<std::shared_ptr<GenerationStream>> submit(Request request,
                                                   std::function<void()> on_ready) override {
    auto sequence =
        SLUICE_TRY(make_sequence(std::move(request), std::move(on_ready), limits_, clock_->now()));
    auto stream = std::make_shared<StreamHandle>(sequence->events);
    SLUICE_TRY(submissions_.push(std::move(sequence)));
    return stream;
  }

  Result<void> flush_cache(CacheFlush what,
                           std::function<void(const CacheFlushed&)> on_done) override {
    return command<CacheFlushed>(
        [what = std::move(what)](EngineLoop& loop) { return loop.flush_cache(what); },
        std::move(on_done));
  }

  Result<void> list_pins(std::function<void(const std::vector<PinnedPrefix>&)> on_done) override {
    return command<std::vector<PinnedPrefix>>([](EngineLoop& loop) { return loop.list_pins(); },
                                              std::move(on_done));
  }

  Result<void> unpin(std::string id, std::function<void(const bool&)> on_done) override {
    return command<bool>([id = std::move(id)](EngineLoop& loop) { return loop.unpin(id); },
                         std::move(on_done));
  }

  Result<void> save_cache(CacheFile file,
                          std::function<void(const Result<CacheTransfer>&)> on_done) override {
    return command<Result<CacheTransfer>>(
        [file = std::move(file)](EngineLoop& loop) { return loop.save_cache(file); },
        std::move(on_done));
  }

  Result<void> load_cache(CacheFile file,
                          std::function<void(const Result<CacheTransfer>&)> on_done) override {
    return command<Result<CacheTransfer>>(
        [file = std::move(file)](EngineLoop& loop) { return loop.load_cache(file); },
        std::move(on_done));
  }

  EngineStatus status() const override { return submissions_.status(); }
  const EngineConfig& config() const override { return config_; }

 private:
  template <class Outcome>
  Result<void> command(std::function<Outcome(EngineLoop&)> action,
                       std::function<void(const Outcome&)> on_done) {
    return submissions_.push(
        std::make_unique<LoopCommand<Outcome>>(std::move(action), std::move(on_done)));
  }

  void run() {
    const FlushDenormals float_mode;  // part of the numerics contract, also for sampling
    SubmissionQueue::Arrivals arrivals =
        SubmissionQueue::make_arrivals(config_.sequences_max + config_.queue_max);
    while (submissions_.take(arrivals, loop_->is_idle(), loop_->next_pin_end())) {
      add(arrivals.sequences);
      run(arrivals.commands);
      loop_->step();
      hand_over();
    }
    add(arrivals.sequences);
    run(arrivals.commands);
    loop_->cancel_all();
    hand_over();
  }

  void add(std::vector<std::unique_ptr<Sequence>>& sequences) {
    for (std::unique_ptr<Sequence>& sequence : sequences) {
      loop_->add(std::move(sequence));
    }
    sequences.clear();
  }

  // Who hears that a command is done finds it in the status.
  void run(std::vector<std::unique_ptr<EngineCommand>>& commands) {
    if (commands.empty()) {
      return;
    }
    for (const auto& command : commands) {
      command->run(*loop_);
    }
    submissions_.publish(loop_->status(), 0);
    for (const auto& command : commands) {
      command->done();
    }
    commands.clear();
  }

  // Numbers first, events second: see engine_loop.h.
  void hand_over() {
    const std::int64_t ended = loop_->ended_count();
    submissions_.publish(loop_->status(), ended - std::exchange(ended_published_, ended));
    loop_->deliver();
  }

  const EngineConfig config_;
  const SequenceLimits limits_;
  const std::unique_ptr<SteadyClock> clock_;
  const std::unique_ptr<EngineLoop> loop_;  // used by the engine thread alone once it runs
  SubmissionQueue submissions_;
  std::int64_t ended_published_ = 0;
  std::thread thread_;
};

}  // namespace

Result<std::unique_ptr<Engine>> Engine::start(Qwen3_5& model, const EngineConfig& config) {
  auto clock = std::make_unique<SteadyClock>();
  auto loop = SLUICE_TRY(EngineLoop::create(model, config, *clock));
  const std::int64_t vocab_size = model.config().vocab_size;
  const SequenceLimits limits{
      .context_max = config.context_max,
      .vocab_size = vocab_size,
      .sampled_vocab_size = config.sampled_vocab_size != 0 ? config.sampled_vocab_size : vocab_size,
      .can_score = config.score_step_max > 0,
      .vision_patches_max = model.vision() != nullptr ? model.vision()->patches_max() : 0};
  try {
    return std::make_unique<ThreadedEngine>(config, limits, std::move(clock), std::move(loop));
  } catch (const std::system_error& error) {
    return fail(ErrorCode::resource_exhausted,
                std::string("cannot start the engine thread: ") + error.what());
  }
}

}  // namespace sluice
