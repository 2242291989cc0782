// The scheduler alone: exact plans of small cases, and random programs with a fake engine that
// checks every budget, every range and that everybody finishes in time.
#include "scheduler/scheduler.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <map>
#include <random>

#include "base/checked_math.h"

namespace sluice {
namespace {

SchedulerConfig small_config() {
  return {.sequences_max = 4,
          .waiting_max = 16,
          .step_tokens_max = 16,
          .step_logit_rows_max = 4,
          .prefill_step_max = 12,
          .block_tokens = 8,
          .block_count = 100};
}

// "sequence:position+count", with "!" for each row whose logits are wanted.
std::string text_of(const StepPlan& plan) {
  std::string text;
  for (const PlannedRows& rows : plan.rows) {
    text += (text.empty() ? "" : " ") + std::to_string(rows.sequence) + ":" +
            std::to_string(rows.position) + "+" + std::to_string(rows.token_count) +
            std::string(static_cast<std::size_t>(rows.logit_row_count), '!');
  }
  return text;
}

// Carries out the current plan: every sequence with logits gets a token.
void advance(Scheduler& scheduler, const StepPlan& plan) {
  scheduler.commit();
  for (const PlannedRows& rows : plan.rows) {
    if (rows.logit_row_count > 0) {
      scheduler.append_token(rows.sequence);
    }
  }
  scheduler.check_invariants();
}

std::string step(Scheduler& scheduler) {
  scheduler.admit();
  const StepPlan& plan = scheduler.plan();
  const std::string text = text_of(plan);
  advance(scheduler, plan);
  return text;
}

TEST(Scheduler, PrefillIsCutAndDecodeGoesFirst) {
  Scheduler scheduler(small_config());
  EXPECT_EQ(text_of(scheduler.plan()), "");
  scheduler.enqueue({.sequence = 1, .prompt_tokens = 30, .tokens_max = 5});
  EXPECT_EQ(step(scheduler), "1:0+12");
  EXPECT_EQ(step(scheduler), "1:12+12");
  scheduler.enqueue({.sequence = 2, .prompt_tokens = 4, .tokens_max = 5});
  EXPECT_EQ(step(scheduler), "1:24+6! 2:0+4!");  // two prefills share a step
  scheduler.enqueue({.sequence = 3, .prompt_tokens = 40, .tokens_max = 5});
  EXPECT_EQ(step(scheduler), "1:30+1! 2:4+1! 3:0+12");
  scheduler.remove(1);
  EXPECT_EQ(step(scheduler), "2:5+1! 3:12+12");
}

TEST(Scheduler, PrefillTakesOnlyWhatDecodeLeaves) {
  SchedulerConfig config = small_config();
  config.step_tokens_max = 5;
  Scheduler scheduler(config);
  scheduler.enqueue({.sequence = 1, .prompt_tokens = 1, .tokens_max = 9});
  scheduler.enqueue({.sequence = 2, .prompt_tokens = 1, .tokens_max = 9});
  scheduler.enqueue({.sequence = 3, .prompt_tokens = 20, .tokens_max = 9});
  EXPECT_EQ(step(scheduler), "1:0+1! 2:0+1! 3:0+3");
  EXPECT_EQ(step(scheduler), "1:1+1! 2:1+1! 3:3+3");
}

TEST(Scheduler, WithoutLogitsNothingIsAskedFor) {
  Scheduler scheduler(small_config());
  scheduler.enqueue({.sequence = 1, .prompt_tokens = 14, .tokens_max = 0});
  EXPECT_EQ(step(scheduler), "1:0+12");
  EXPECT_EQ(step(scheduler), "1:12+2");
  scheduler.remove(1);
  EXPECT_EQ(scheduler.running_count(), 0);
  EXPECT_EQ(scheduler.reserved_block_count(), 0);
}

using Ids = std::vector<SequenceId>;

TEST(Scheduler, AdmitsByMemoryInOrder) {
  SchedulerConfig config = small_config();
  config.block_count = 5;
  Scheduler scheduler(config);
  scheduler.enqueue({.sequence = 1, .prompt_tokens = 9, .tokens_max = 8});   // 2 blocks, later 3
  scheduler.enqueue({.sequence = 2, .prompt_tokens = 17, .tokens_max = 0});  // 3 blocks
  scheduler.enqueue({.sequence = 3, .prompt_tokens = 2, .tokens_max = 6});   // 1 block, would fit
  EXPECT_EQ(scheduler.admit().admitted, Ids{1});
  EXPECT_EQ(scheduler.waiting_count(), 2);
  EXPECT_EQ(scheduler.reserved_block_count(), 2);
  advance(scheduler, scheduler.plan());
  scheduler.remove(1);
  EXPECT_EQ(scheduler.admit().admitted, (Ids{2, 3}));
}

TEST(Scheduler, RunningIsLimited) {
  Scheduler scheduler(small_config());
  for (SequenceId id = 1; id <= 6; ++id) {
    scheduler.enqueue({.sequence = id, .prompt_tokens = 1, .tokens_max = 1});
  }
  EXPECT_EQ(scheduler.admit().admitted.size(), 4U);
  scheduler.remove(5);  // still waiting
  scheduler.remove(2);
  EXPECT_EQ(scheduler.admit().admitted, Ids{6});
}

TEST(Scheduler, BetterPrioritiesGoFirst) {
  SchedulerConfig config = small_config();
  config.sequences_max = 2;
  Scheduler scheduler(config);
  scheduler.enqueue({.sequence = 1, .priority = 1, .prompt_tokens = 20, .tokens_max = 5});
  scheduler.enqueue({.sequence = 2, .priority = -3, .prompt_tokens = 20, .tokens_max = 5});
  scheduler.enqueue({.sequence = 3, .priority = 0, .prompt_tokens = 20, .tokens_max = 5});
  EXPECT_EQ(scheduler.admit().admitted, (Ids{2, 3}));
  EXPECT_EQ(text_of(scheduler.plan()), "2:0+6 3:0+6");
}

TEST(Scheduler, ABetterPriorityTakesThePlaceOfTheLastInOrder) {
  SchedulerConfig config = small_config();
  config.sequences_max = 2;
  Scheduler scheduler(config);
  scheduler.enqueue({.sequence = 1, .prompt_tokens = 1, .tokens_max = 5});
  scheduler.enqueue({.sequence = 2, .prompt_tokens = 1, .tokens_max = 5});
  EXPECT_EQ(step(scheduler), "1:0+1! 2:0+1!");
  scheduler.enqueue({.sequence = 3, .prompt_tokens = 1, .tokens_max = 5});
  EXPECT_EQ(step(scheduler), "1:1+1! 2:1+1!");  // no better than the others: waits
  scheduler.enqueue({.sequence = 4, .priority = -1, .prompt_tokens = 3, .tokens_max = 5});
  EXPECT_EQ(scheduler.admit().preempted, Ids{2});
  EXPECT_EQ(text_of(scheduler.plan()), "1:2+1! 4:0+3!");
  advance(scheduler, scheduler.plan());
  scheduler.remove(4);
  EXPECT_EQ(scheduler.admit().admitted, Ids{2});  // before 3, which came later
  scheduler.set_computed(2, 2);
  EXPECT_EQ(text_of(scheduler.plan()), "1:3+1! 2:2+1!");  // its two tokens are not lost
}

// Nobody is sent away for a sequence that would not fit all the same.
TEST(Scheduler, PreemptsOnlyWhenItHelps) {
  SchedulerConfig config = small_config();
  config.block_count = 6;
  Scheduler scheduler(config);
  scheduler.enqueue({.sequence = 1, .priority = -1, .prompt_tokens = 30, .tokens_max = 0});
  scheduler.enqueue({.sequence = 2, .priority = 3, .prompt_tokens = 5, .tokens_max = 0});
  EXPECT_EQ(scheduler.admit().admitted, (Ids{1, 2}));
  scheduler.enqueue({.sequence = 3, .priority = 0, .prompt_tokens = 17, .tokens_max = 0});
  EXPECT_EQ(scheduler.admit().preempted, Ids{});
  scheduler.enqueue({.sequence = 4, .priority = -1, .prompt_tokens = 16, .tokens_max = 0});
  EXPECT_EQ(scheduler.admit().preempted, Ids{2});
  EXPECT_EQ(scheduler.running_count(), 2);
}

TEST(Scheduler, WhenMemoryRunsOutTheLastGoesAndComesBack) {
  SchedulerConfig config = small_config();
  config.block_count = 5;
  Scheduler scheduler(config);
  scheduler.enqueue({.sequence = 1, .prompt_tokens = 8, .tokens_max = 30});
  scheduler.enqueue({.sequence = 2, .prompt_tokens = 8, .tokens_max = 30});
  EXPECT_EQ(scheduler.admit().admitted, (Ids{1, 2}));
  Ids preempted;
  int steps = 0;
  for (; preempted.empty(); ++steps) {
    ASSERT_LT(steps, 40);
    preempted = scheduler.admit().preempted;
    advance(scheduler, scheduler.plan());
    EXPECT_LE(scheduler.reserved_block_count(), 6);
  }
  EXPECT_EQ(preempted, Ids{2});
  EXPECT_EQ(steps, 11);  // one of prefill for each, nine tokens each: three blocks are too many
  EXPECT_EQ(scheduler.admit().admitted, Ids{});  // its three blocks do not fit beside the other
  scheduler.remove(1);
  EXPECT_EQ(scheduler.admit().admitted, Ids{2});
}

TEST(Scheduler, AShortPrefillDoesNotWaitForALongOne) {
  Scheduler scheduler(small_config());
  scheduler.enqueue({.sequence = 1, .prompt_tokens = 100, .tokens_max = 5});
  EXPECT_EQ(step(scheduler), "1:0+12");
  scheduler.enqueue({.sequence = 2, .prompt_tokens = 50, .tokens_max = 5});
  scheduler.enqueue({.sequence = 3, .prompt_tokens = 4, .tokens_max = 5});
  EXPECT_EQ(step(scheduler), "1:12+6 2:0+2 3:0+4!");
  scheduler.remove(3);
  EXPECT_EQ(step(scheduler), "1:18+6 2:2+6");
  scheduler.remove(2);
  EXPECT_EQ(step(scheduler), "1:24+12");
}

TEST(Scheduler, PrefillIsSmallerBesideDecode) {
  Scheduler scheduler(small_config());
  scheduler.set_prefill_beside_decode(3);
  scheduler.enqueue({.sequence = 1, .prompt_tokens = 30, .tokens_max = 5});
  EXPECT_EQ(step(scheduler), "1:0+12");
  scheduler.enqueue({.sequence = 2, .prompt_tokens = 1, .tokens_max = 5});
  EXPECT_EQ(step(scheduler), "2:0+1! 1:12+3");
  scheduler.set_prefill_beside_decode(0);
  EXPECT_EQ(step(scheduler), "2:1+1!");
  scheduler.remove(2);
  EXPECT_EQ(step(scheduler), "1:15+12");
}

TEST(Scheduler, WhatIsKnownOfAPromptIsNotComputed) {
  Scheduler scheduler(small_config());
  scheduler.enqueue({.sequence = 1, .prompt_tokens = 30, .tokens_max = 5});
  scheduler.enqueue({.sequence = 2, .prompt_tokens = 9, .tokens_max = 5});
  scheduler.admit();
  scheduler.set_computed(1, 16);
  scheduler.set_computed(2, 8);
  EXPECT_EQ(step(scheduler), "2:8+1! 1:16+12");  // one token left is as good as decoding
  EXPECT_EQ(step(scheduler), "2:9+1! 1:28+2!");
}

TEST(Scheduler, AHeldSequenceGetsNoRows) {
  Scheduler scheduler(small_config());
  scheduler.enqueue({.sequence = 1, .prompt_tokens = 14, .tokens_max = 5});
  scheduler.enqueue({.sequence = 2, .prompt_tokens = 1, .tokens_max = 5});
  scheduler.enqueue({.sequence = 3, .prompt_tokens = 4, .tokens_max = 5});
  scheduler.admit();
  scheduler.hold(2, true);
  scheduler.hold(3, true);
  EXPECT_EQ(step(scheduler), "1:0+12");
  EXPECT_EQ(step(scheduler), "1:12+2!");
  scheduler.hold(2, false);
  scheduler.set_computed(3, 2);
  scheduler.hold(3, false);
  EXPECT_EQ(step(scheduler), "2:0+1! 1:14+1! 3:2+2!");
}

TEST(Scheduler, TurnsRotateWhenRowsAreScarce) {
  SchedulerConfig config = small_config();
  config.step_logit_rows_max = 2;
  Scheduler scheduler(config);
  for (SequenceId id = 1; id <= 3; ++id) {
    scheduler.enqueue({.sequence = id, .prompt_tokens = 1, .tokens_max = 9});
  }
  EXPECT_EQ(step(scheduler), "1:0+1! 2:0+1!");
  EXPECT_EQ(step(scheduler), "3:0+1! 1:1+1!");
  EXPECT_EQ(step(scheduler), "2:1+1! 3:1+1!");
}

TEST(Scheduler, PrefillStopsShortWhenLogitRowsRunOut) {
  SchedulerConfig config = small_config();
  config.step_logit_rows_max = 1;
  Scheduler scheduler(config);
  scheduler.enqueue({.sequence = 1, .prompt_tokens = 1, .tokens_max = 9});
  scheduler.enqueue({.sequence = 2, .prompt_tokens = 5, .tokens_max = 9});
  EXPECT_EQ(step(scheduler), "1:0+1! 2:0+4");
  EXPECT_EQ(step(scheduler), "1:1+1!");
  EXPECT_EQ(step(scheduler), "2:4+1!");
}

// A stream of short requests must not starve a long prefill even with one row per step.
TEST(Scheduler, ShortRequestsDoNotStarveAPrefill) {
  SchedulerConfig config = small_config();
  config.step_tokens_max = 1;
  config.step_logit_rows_max = 1;
  Scheduler scheduler(config);
  scheduler.enqueue({.sequence = 1, .prompt_tokens = 20, .tokens_max = 1});
  SequenceId next = 2;
  int steps = 0;
  for (bool done = false; !done; ++steps) {
    ASSERT_LT(steps, 200);
    while (scheduler.waiting_count() < 4) {
      scheduler.enqueue({.sequence = next++, .prompt_tokens = 1, .tokens_max = 1});
    }
    scheduler.admit();
    const StepPlan& plan = scheduler.plan();
    ASSERT_EQ(plan.token_count, 1);
    const PlannedRows rows = plan.rows.front();
    scheduler.commit();
    if (rows.logit_row_count > 0) {
      done = rows.sequence == 1;
      scheduler.remove(rows.sequence);
    }
  }
}

TEST(Scheduler, AScoredPromptHasABudgetOfItsOwn) {
  SchedulerConfig config = small_config();
  config.step_score_rows_max = 5;
  Scheduler scheduler(config);
  scheduler.enqueue({.sequence = 1, .prompt_tokens = 9, .tokens_max = 2, .is_scored = true});
  scheduler.enqueue({.sequence = 2, .prompt_tokens = 4, .tokens_max = 2});
  scheduler.admit();
  EXPECT_EQ(text_of(scheduler.plan()), "1:0+5!!!!! 2:0+4!");
  scheduler.commit();
  scheduler.append_token(2);
  EXPECT_EQ(text_of(scheduler.plan()), "2:4+1! 1:5+4!!!!");
  scheduler.commit();
  scheduler.append_token(1);
  scheduler.remove(2);
  EXPECT_EQ(text_of(scheduler.plan()), "1:9+1!");
}

// Preempts sequence 1 for one step and returns the step after it.
std::string step_after_preemption(Scheduler& scheduler) {
  scheduler.enqueue({.sequence = 2, .priority = -1, .prompt_tokens = 1, .tokens_max = 1});
  EXPECT_EQ(scheduler.admit().preempted, Ids{1});
  EXPECT_EQ(text_of(scheduler.plan()), "2:0+1!");
  scheduler.commit();
  scheduler.remove(2);
  scheduler.admit();
  return text_of(scheduler.plan());
}

TEST(Scheduler, APreemptedPromptIsScoredAgainOnlyIfItsScoresWereNotAllKnown) {
  SchedulerConfig config = small_config();
  config.sequences_max = 1;
  config.step_score_rows_max = 4;
  for (const int steps : {1, 2, 3, 4}) {
    SCOPED_TRACE(steps);
    Scheduler scheduler(config);
    scheduler.enqueue({.sequence = 1, .prompt_tokens = 9, .tokens_max = 3, .is_scored = true});
    std::int64_t computed = 0;
    for (int i = 0; i < steps; ++i) {
      scheduler.admit();
      computed += scheduler.plan().token_count;
      scheduler.commit();
      if (computed >= 9) {
        scheduler.append_token(1);
      }
    }
    // After 4, 8, 9 and 10 tokens; the last one of the prompt is all the same to its scores.
    const std::array<const char*, 4> want{"1:0+4!!!!", "1:0+9!", "1:0+10!", "1:0+11!"};
    EXPECT_EQ(step_after_preemption(scheduler), want[static_cast<std::size_t>(steps - 1)]);
  }
}

// One sequence as the naive engine sees it.
struct Life {
  std::int64_t prompt = 0;
  std::int64_t tokens_max = 0;
  std::int64_t stops_after = 0;  // the model ends it after so many tokens
  std::int64_t generated = 0;
  std::int64_t computed = 0;
  std::int64_t waited = 0;  // steps without rows since admission
  std::int64_t priority = 0;
  bool scored = false;
  bool running = false;
  bool held = false;
};

class RandomProgram {
 public:
  explicit RandomProgram(std::uint64_t seed) : random_(seed), config_(random_config()) {}

  void run() {
    Scheduler scheduler(config_);
    for (int i = 0; i < 400; ++i) {
      const bool arriving = i < 300;
      while (arriving && below(3) != 0 && scheduler.waiting_count() < config_.waiting_max) {
        arrive(scheduler);
      }
      if (!lives_.empty() && below(10) == 0) {  // cancel anyone
        const auto victim =
            std::next(lives_.begin(), below(static_cast<std::int64_t>(lives_.size())));
        scheduler.remove(victim->first);
        lives_.erase(victim);
      }
      step(scheduler);
    }
    for (int i = 0; !lives_.empty(); ++i) {
      ASSERT_LT(i, 100000) << "somebody never finishes";
      step(scheduler);
    }
    EXPECT_EQ(scheduler.running_count() + scheduler.waiting_count(), 0);
    EXPECT_EQ(scheduler.reserved_block_count(), 0);
  }

  std::int64_t preempted_count() const { return preempted_; }

 private:
  std::int64_t below(std::int64_t n) {
    return static_cast<std::int64_t>(random_() % static_cast<std::uint64_t>(n));
  }

  SchedulerConfig random_config() {
    return {.sequences_max = 1 + below(12),
            .waiting_max = 1 + below(20),
            .step_tokens_max = 1 + below(40),
            .step_logit_rows_max = 1 + below(12),
            .step_score_rows_max = below(20),
            .prefill_step_max = 1 + below(40),
            .block_tokens = 1 + below(16),
            .block_count = 120 + below(below(2) == 0 ? 10 : 200)};
  }

  void arrive(Scheduler& scheduler) {
    Life life{.prompt = 1 + below(below(4) == 0 ? 90 : 10), .tokens_max = below(20)};
    life.stops_after = 1 + below(20);
    life.priority = below(3) == 0 ? below(5) - 2 : 0;
    life.scored = config_.step_score_rows_max > 0 && below(4) == 0;
    scheduler.enqueue({.sequence = next_,
                       .priority = life.priority,
                       .prompt_tokens = life.prompt,
                       .tokens_max = life.tokens_max,
                       .is_scored = life.scored});
    lives_[next_++] = life;
  }

  void step(Scheduler& scheduler) {
    admit(scheduler);
    const StepPlan plan = scheduler.plan();
    scheduler.check_invariants();
    check(plan);
    scheduler.commit();
    for (const PlannedRows& rows : plan.rows) {
      Life& life = lives_[rows.sequence];
      life.computed += rows.token_count;
      life.waited = 0;
      if (life.computed < life.prompt + life.generated) {
        continue;
      }
      ++life.generated;
      if (life.generated < std::min(life.tokens_max, life.stops_after)) {
        scheduler.append_token(rows.sequence);
      } else {
        scheduler.remove(rows.sequence);
        lives_.erase(rows.sequence);
      }
    }
    scheduler.check_invariants();
  }

  static bool comes_before(const Life& a, SequenceId a_id, const Life& b, SequenceId b_id) {
    return std::pair(a.priority, a_id) < std::pair(b.priority, b_id);
  }

  // Part of some prompts is known; some wait for a while unless they are the first.
  void admit(Scheduler& scheduler) {
    const Scheduler::Admission admission = scheduler.admit();
    for (const SequenceId id : admission.preempted) {
      Life& life = lives_.at(id);
      ASSERT_TRUE(life.running);
      life.running = false;
      life.held = false;
      life.scored = life.scored && life.computed + 1 < life.prompt;
      life.computed = 0;
      ++preempted_;
    }
    for (const SequenceId id : admission.admitted) {
      ASSERT_EQ(std::ranges::count(admission.preempted, id), 0);
      lives_.at(id).running = true;
    }
    for (const SequenceId id : admission.admitted) {
      for (const auto& [other, waiting] : lives_) {
        ASSERT_TRUE(waiting.running || comes_before(lives_.at(id), id, waiting, other))
            << id << " overtook " << other;
      }
    }
    for (const SequenceId id : admission.admitted) {
      Life& life = lives_.at(id);
      life.waited = 0;
      if (below(3) == 0) {
        life.computed = below(life.prompt + life.generated);
        scheduler.set_computed(id, life.computed);
      }
      life.held = below(4) == 0;
      scheduler.hold(id, life.held);
    }
    const auto first = std::ranges::find_if(lives_, [](const auto& l) { return l.second.running; });
    for (auto& [id, life] : lives_) {
      if (life.held && (id == first->first || below(3) == 0)) {
        life.held = false;
        scheduler.hold(id, false);
      }
    }
  }

  void check(const StepPlan& plan) {
    std::int64_t tokens = 0;
    std::int64_t logit_rows = 0;
    std::int64_t score_rows = 0;
    std::int64_t prefill = 0;
    std::int64_t blocks = 0;
    std::int64_t running = 0;
    for (const PlannedRows& rows : plan.rows) {
      const Life& life = lives_.at(rows.sequence);
      const std::int64_t known = life.prompt + life.generated;
      ASSERT_TRUE(life.running);
      ASSERT_FALSE(life.held);
      ASSERT_EQ(rows.position, life.computed);
      ASSERT_GE(rows.token_count, 1);
      ASSERT_LE(rows.position + rows.token_count, known);
      const bool scored = life.scored && known - life.computed > 1;
      const bool ends = rows.position + rows.token_count == known;
      ASSERT_EQ(rows.logit_row_count, scored                        ? rows.token_count
                                      : ends && life.tokens_max > 0 ? 1
                                                                    : 0);
      tokens += rows.token_count;
      prefill += rows.token_count > 1 ? rows.token_count : 0;
      logit_rows += rows.logit_row_count;
      score_rows += scored ? rows.logit_row_count : 0;
    }
    ASSERT_EQ(tokens, plan.token_count);
    ASSERT_EQ(logit_rows, plan.logit_row_count);
    ASSERT_LE(tokens, config_.step_tokens_max);
    ASSERT_LE(logit_rows - score_rows, config_.step_logit_rows_max);
    ASSERT_LE(score_rows, config_.step_score_rows_max);
    ASSERT_LE(prefill, config_.prefill_step_max);
    for (auto& [id, life] : lives_) {
      running += life.running ? 1 : 0;
      blocks += life.running ? ceil_div(life.prompt + life.generated, config_.block_tokens) : 0;
      // A sequence that decodes waits at most for everybody's turn, and turns go round.
      const bool decoding = life.running && life.prompt + life.generated - life.computed == 1;
      life.waited += life.running && !life.held ? 1 : 0;
      ASSERT_LE(decoding ? life.waited : 0, 2 * config_.sequences_max + 200 * (life.generated == 0))
          << "sequence " << id << " starves";
    }
    ASSERT_LE(running, config_.sequences_max);
    ASSERT_LE(blocks, config_.block_count);
    ASSERT_EQ(plan.rows.empty(), running == 0);
  }

  std::mt19937_64 random_;
  SchedulerConfig config_;
  std::map<SequenceId, Life> lives_;
  SequenceId next_ = 1;
  std::int64_t preempted_ = 0;
};

TEST(Scheduler, RandomProgramsObeyEveryBudgetAndFinish) {
  std::int64_t preempted = 0;
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    RandomProgram program(seed);
    program.run();
    if (testing::Test::HasFatalFailure() || testing::Test::HasNonfatalFailure()) {
      return;
    }
    preempted += program.preempted_count();
  }
  EXPECT_GT(preempted, 1000);
}

}  // namespace
}  // namespace sluice
