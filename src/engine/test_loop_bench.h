// For tests: an EngineLoop on FakeModel, stepped by hand, with the streams of what was submitted.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/check.h"
#include "engine/engine_loop.h"
#include "engine/fake_answer.h"
#include "engine/fake_model.h"

namespace sluice {

class ManualClock final : public Clock {
 public:
  TimePoint now() const override { return now_; }
  void advance(double seconds) {
    now_ += std::chrono::duration_cast<TimePoint::duration>(std::chrono::duration<double>(seconds));
  }

 private:
  TimePoint now_{};
};

// kNanToken can be in a prompt but is never chosen.
inline EngineConfig small_config() {
  return {.context_max = 512,
          .sequences_max = 4,
          .queue_max = 100,
          .prefill_step_max = 64,
          .sampled_vocab_size = kNanToken};
}

// A loop with the streams of what was submitted to it.
class Bench {
 public:
  static constexpr std::int64_t kPatchesMax = 4096;

  explicit Bench(const EngineConfig& config = small_config(),
                 const ModelOptions& options = {.vision_patches_max = kPatchesMax},
                 std::size_t state_slot_bytes = sizeof(FakeModel::State))
      : model(options, state_slot_bytes), config_(config) {
    auto created = EngineLoop::create(model, config, clock);
    SLUICE_CHECK(created.has_value());
    loop = std::move(*created);
  }

  std::shared_ptr<GenerationStream> submit(Request request) {
    const SequenceLimits limits{.context_max = config_.context_max,
                                .vocab_size = kFakeVocabSize,
                                .sampled_vocab_size = config_.sampled_vocab_size != 0
                                                          ? config_.sampled_vocab_size
                                                          : kFakeVocabSize,
                                .can_score = config_.score_step_max > 0,
                                .vision_patches_max = model.vision() ? kPatchesMax : 0};
    auto sequence = make_sequence(std::move(request), {}, limits, clock.now());
    SLUICE_CHECK(sequence.has_value());
    auto stream = std::make_shared<StreamHandle>((*sequence)->events);
    (*sequence)->id = next_id_++;
    loop->add(std::move(*sequence));
    return stream;
  }

  void step() {
    loop->step();
    loop->check_invariants();
    loop->deliver();
  }

  void run() {
    for (int steps = 0; !loop->is_idle(); ++steps) {
      SLUICE_CHECK(steps < 100000);
      step();
    }
  }

  ManualClock clock;
  FakeModel model;
  std::unique_ptr<EngineLoop> loop;

 private:
  EngineConfig config_;
  SequenceId next_id_ = 1;
};

struct Collected {
  FakeAnswer answer;
  std::vector<TokenEvent> tokens = {};  // those of `answer`
  std::optional<PromptScored> scored = {};
  std::optional<GenerationAdmitted> admitted = {};
  std::optional<GenerationFinished> finished = {};
};

inline Collected collect(GenerationStream& stream) {
  Collected collected;
  while (auto event = stream.try_next()) {
    EXPECT_FALSE(collected.finished) << "an event after the end";
    if (const auto* token = std::get_if<TokenEvent>(&*event)) {
      collected.answer.token_ids.push_back(token->token_id);
      collected.tokens.push_back(*token);
    } else if (auto* scored = std::get_if<PromptScored>(&*event)) {
      EXPECT_FALSE(collected.scored);
      EXPECT_TRUE(collected.tokens.empty());
      collected.scored = std::move(*scored);
    } else if (const auto* admitted = std::get_if<GenerationAdmitted>(&*event)) {
      EXPECT_FALSE(collected.admitted);
      EXPECT_TRUE(collected.answer.token_ids.empty());
      collected.admitted = *admitted;
    } else {
      collected.finished = std::get<GenerationFinished>(*event);
      collected.answer.reason = collected.finished->reason;
    }
  }
  return collected;
}

}  // namespace sluice
