#include "engine/prefill_pace.h"

#include <gtest/gtest.h>

namespace sluice {
namespace {

// A machine on which a step takes `base` for the weights and `row` for each prompt row.
struct Machine {
  double base;
  double row;

  double seconds(const StepPlan& plan) const {
    return base + row * static_cast<double>(plan.token_count - 1);
  }
};

StepPlan plan_of(std::int64_t decoding, std::int64_t prompt_rows) {
  StepPlan plan;
  for (std::int64_t i = 0; i < decoding; ++i) {
    plan.rows.push_back({.sequence = i, .token_count = 1, .logit_row_count = 1});
  }
  if (prompt_rows > 0) {
    plan.rows.push_back({.sequence = decoding, .token_count = prompt_rows});
  }
  plan.token_count = decoding + prompt_rows;
  return plan;
}

// The longest mixed step among so many, beside one decoding sequence.
double longest_of(PrefillPace& pace, const Machine& machine, int steps, std::int64_t* rows_sum) {
  double longest = 0.0;
  for (int i = 0; i < steps; ++i) {
    const StepPlan plan = plan_of(1, pace.rows());
    pace.step_done(plan, machine.seconds(plan));
    longest = std::max(longest, machine.seconds(plan));
    *rows_sum += plan.token_count - 1;
  }
  return longest;
}

TEST(PrefillPace, MeasuresDecodingFirst) {
  PrefillPace pace;
  EXPECT_EQ(pace.rows(), 0);
  pace.step_done(plan_of(0, 512), 1.0);  // no answer was waiting: says nothing of decoding
  EXPECT_EQ(pace.rows(), 0);
  pace.step_done(plan_of(1, 0), 0.1);
  EXPECT_EQ(pace.rows(), PrefillPace::kFirstRows);
}

TEST(PrefillPace, StretchesStepsToTheLimitAndNotBeyond) {
  for (const Machine machine : {Machine{0.1, 0.005}, Machine{0.1, 0.001}, Machine{0.01, 0.00005}}) {
    PrefillPace pace;
    std::int64_t rows = 0;
    longest_of(pace, machine, 30, &rows);
    rows = 0;
    const double longest = longest_of(pace, machine, 200, &rows);
    EXPECT_LE(longest, PrefillPace::kStretchMax * machine.base * 1.001);
    const double possible = 200 * (PrefillPace::kStretchMax - 1.0) * machine.base / machine.row;
    EXPECT_GT(static_cast<double>(rows), 0.6 * possible) << "most of the time is used";
  }
}

TEST(PrefillPace, NeverStandsStill) {
  PrefillPace pace;
  std::int64_t rows = 0;
  longest_of(pace, {.base = 0.001, .row = 1.0}, 100, &rows);
  EXPECT_GE(rows, 98 * PrefillPace::kFewestRows);
}

TEST(PrefillPace, FollowsAMachineThatBecomesSlower) {
  PrefillPace pace;
  std::int64_t rows = 0;
  longest_of(pace, {.base = 0.1, .row = 0.001}, 100, &rows);
  longest_of(pace, {.base = 0.1, .row = 0.004}, 20, &rows);
  const StepPlan next = plan_of(1, pace.rows());
  EXPECT_LE((Machine{0.1, 0.004}.seconds(next)), 0.1 * PrefillPace::kStretchMax * 1.05);
}

TEST(PrefillPace, AClockThatStandsStillIsNoDivisionByZero) {
  PrefillPace pace;
  pace.step_done(plan_of(1, 0), 0.0);
  pace.step_done(plan_of(1, 32), 0.0);
  EXPECT_GE(pace.rows(), PrefillPace::kFewestRows);
}

TEST(PrefillPace, MeasuresDecodingAgainWhilePromptsKeepComing) {
  PrefillPace pace;
  int measured = 0;
  for (int i = 0; i < 1000; ++i) {
    const std::int64_t rows = pace.rows();
    measured += rows == 0 ? 1 : 0;
    pace.step_done(plan_of(2, rows), 0.1);
  }
  EXPECT_NEAR(measured, 1000 / (PrefillPace::kMixedStepsMax + 1), 2);
}

}  // namespace
}  // namespace sluice
