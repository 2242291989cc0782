// The check of exactness itself: quiet on an engine that is right, loud on a model whose results
// depend on something they must not.
#include "engine/exactness.h"

#include <gtest/gtest.h>

#include "engine/fake_model.h"

namespace sluice {
namespace {

constexpr ModelOptions kOptions{.step_tokens_max = 256,
                                .step_logit_rows_max = kExactnessSequencesMax};

ExactnessOptions small_check() {
  return {.seed = 5, .rounds = 12, .requests = 40, .memory_max = 1 << 20};
}

TEST(Exactness, TheEngineIsExact) {
  FakeModel model(kOptions);
  std::int64_t heard = 0;
  const auto report =
      check_exactness(model, small_check(), [&heard](std::int64_t compared) { heard = compared; });
  ASSERT_TRUE(report) << report.error().message;
  EXPECT_EQ(report->difference_count, 0);
  EXPECT_EQ(report->compared, 480);
  EXPECT_EQ(heard, 480);
  EXPECT_GT(report->reused_tokens, 1000);
  EXPECT_GT(report->preemptions, 5);
  EXPECT_GT(report->evictions, 5);
  EXPECT_GT(report->cancelled, 10);
  EXPECT_GT(report->running_max, 10);
}

TEST(Exactness, AStateThatIsNotRestoredIsFound) {
  FakeModel model(kOptions);
  model.on_checkpoint = [](FakeModel::State& state) { state.hash ^= 4; };
  const auto report = check_exactness(model, small_check(), {});
  ASSERT_TRUE(report) << report.error().message;
  EXPECT_GT(report->difference_count, 10);
  EXPECT_EQ(report->differences.size(), 10U);
}

TEST(StateReset, NothingIsLeftBehind) {
  FakeModel model(kOptions);
  const auto differences = check_state_reset(model, 5000, 1);
  ASSERT_TRUE(differences) << differences.error().message;
  EXPECT_EQ(*differences, std::vector<std::string>{});
}

TEST(StateReset, AStateThatIsNotRestoredIsFound) {
  FakeModel model(kOptions);
  model.on_checkpoint = [](FakeModel::State& state) { state.hash ^= 4; };
  const auto differences = check_state_reset(model, 5000, 1);
  ASSERT_TRUE(differences) << differences.error().message;
  EXPECT_EQ(differences->size(), 2U);  // both requests come from the cache the second time
}

TEST(Exactness, AnAnswerThatDependsOnTheBatchIsFound) {
  FakeModel model(kOptions);
  model.bends_logits = [](const ForwardBatch& batch) { return batch.sequences.size() > 6; };
  const auto report = check_exactness(model, small_check(), {});
  ASSERT_TRUE(report) << report.error().message;
  EXPECT_GT(report->difference_count, 5);
}

}  // namespace
}  // namespace sluice
