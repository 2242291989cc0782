// What the engine counts, and what it says about reuse, with a clock moved by hand.
#include "engine/engine_recorder.h"

#include <gtest/gtest.h>

#include "engine/reuse_report.h"
#include "engine/test_loop_bench.h"

namespace sluice {
namespace {

EngineConfig reusing_config(std::size_t reuse_bytes = 1 << 20) {
  EngineConfig config = small_config();
  config.reuse_bytes = reuse_bytes;
  return config;
}

PromptReuse reuse_of(Bench& bench, Request request) {
  const auto stream = bench.submit(std::move(request));
  bench.run();
  return collect(*stream).finished->reuse.value();
}

PromptLookups lookups(const Bench& bench, ReuseLimit limit) {
  const auto index = std::ranges::find(kReuseLimits, limit) - kReuseLimits.begin();
  return bench.loop->status().metrics.lookups[static_cast<std::size_t>(index)];
}

TEST(EngineRecorder, StartsAtZero) {
  Bench bench(reusing_config());
  const EngineMetrics metrics = bench.loop->status().metrics;
  EXPECT_EQ(metrics.prefilled_tokens + metrics.decoded_tokens + metrics.wanted_tokens, 0);
  EXPECT_EQ(metrics.step_seconds.count() + metrics.queue_seconds.count(), 0);
}

TEST(EngineRecorder, EveryTokenIsCountedOnce) {
  Bench bench(reusing_config());
  const auto first = bench.submit(make_request(200, 10, 1));
  const auto second = bench.submit(make_request(70, 3, 2));
  bench.run();
  const auto third = bench.submit(make_request(200, 0, 1));
  bench.run();
  const EngineMetrics metrics = bench.loop->status().metrics;
  EXPECT_EQ(metrics.prefilled_tokens, 200 + 70 + (200 - 192));
  EXPECT_EQ(metrics.decoded_tokens, 9 + 2);  // the last token of an answer is not computed
  EXPECT_EQ(metrics.wanted_tokens, 199 + 69 + 199);
  EXPECT_EQ(metrics.reused_tokens, 192);
  EXPECT_EQ(metrics.step_tokens.sum(),
            static_cast<double>(metrics.prefilled_tokens + metrics.decoded_tokens));
  EXPECT_EQ(metrics.step_tokens.count(), bench.loop->status().steps);
  EXPECT_EQ(metrics.prompt_tokens.sum(), 200 + 70 + 200);
  EXPECT_EQ(metrics.answer_tokens.sum(), 10 + 3);
  EXPECT_EQ(metrics.between_tokens_seconds.count(), 9 + 2);
  EXPECT_EQ(metrics.first_token_seconds.count(), 2);  // the third answer has no token
  EXPECT_EQ(metrics.per_token_seconds.count(), 2);
  EXPECT_EQ(metrics.end_to_end_seconds.count(), 3);
}

TEST(EngineRecorder, PhasesAreMeasuredByTheClock) {
  EngineConfig config = small_config();
  config.sequences_max = 1;
  Bench bench(config);
  const auto first = bench.submit(make_request(128, 1, 1));  // two steps of 64
  const auto waiting = bench.submit(make_request(64, 3, 2));
  bench.clock.advance(1.0);
  while (!bench.loop->is_idle()) {
    bench.step();
    bench.clock.advance(10.0);
  }
  const EngineMetrics metrics = bench.loop->status().metrics;
  EXPECT_DOUBLE_EQ(metrics.queue_seconds.sum(), 1.0 + 21.0);
  EXPECT_DOUBLE_EQ(metrics.prefill_seconds.sum(), 10.0 + 0.0);
  EXPECT_DOUBLE_EQ(metrics.first_token_seconds.sum(), 11.0 + 21.0);
  EXPECT_DOUBLE_EQ(metrics.decode_seconds.sum(), 0.0 + 20.0);
  EXPECT_DOUBLE_EQ(metrics.between_tokens_seconds.sum(), 20.0);
  EXPECT_EQ(metrics.between_tokens_seconds.count(), 2);
  EXPECT_DOUBLE_EQ(metrics.per_token_seconds.sum(), 10.0);
  EXPECT_DOUBLE_EQ(metrics.inference_seconds.sum(), 10.0 + 20.0);
  EXPECT_DOUBLE_EQ(metrics.end_to_end_seconds.sum(), 11.0 + 41.0);
}

TEST(EngineRecorder, ASequenceThatNeverRanHasNoPhases) {
  EngineConfig config = small_config();
  config.sequences_max = 1;
  Bench bench(config);
  const auto first = bench.submit(make_request(100, 4, 1));
  bench.submit(make_request(100, 4, 2))->cancel();
  bench.run();
  const EngineMetrics metrics = bench.loop->status().metrics;
  EXPECT_EQ(metrics.end_to_end_seconds.count(), 2);
  EXPECT_EQ(metrics.queue_seconds.count(), 1);
  EXPECT_EQ(metrics.answer_tokens.count(), 1);
}

TEST(EngineRecorder, UncountedSequencesLeaveNoTrace) {
  Bench bench(reusing_config());
  Request request = make_request(100, 4, 1);
  request.counted = false;
  const auto stream = bench.submit(request);
  bench.run();
  const EngineMetrics metrics = bench.loop->status().metrics;
  EXPECT_EQ(metrics.prefilled_tokens + metrics.decoded_tokens + metrics.wanted_tokens, 0);
  EXPECT_EQ(metrics.step_seconds.count() + metrics.end_to_end_seconds.count() +
                metrics.first_token_seconds.count() + metrics.between_tokens_seconds.count(),
            0);
  EXPECT_EQ(bench.loop->status().steps, 5);  // two of the prompt, three of the answer
}

TEST(ReuseReport, SaysWhyNoMoreWasReused) {
  Bench bench(reusing_config());
  const auto reuse = [&bench](const Request& request) { return reuse_of(bench, request); };
  EXPECT_EQ(reuse(make_request(40, 1)).limit, ReuseLimit::prompt_short);
  EXPECT_EQ(reuse(make_request(300, 1, 1)).limit, ReuseLimit::cache_empty);
  Request salted = make_request(300, 1, 1);
  salted.cache_salt = "other";
  EXPECT_EQ(reuse(salted).limit, ReuseLimit::salt_unknown);

  const PromptReuse again = reuse(make_request(300, 1, 1));
  EXPECT_EQ(again.limit, ReuseLimit::complete);
  EXPECT_EQ(again.tokens, 256);
  EXPECT_EQ(again.diverged_at, std::nullopt);

  Request longer = make_request(300, 1, 1);
  longer.token_ids.insert(longer.token_ids.end(), 100, 3);
  EXPECT_EQ(reuse(longer).limit, ReuseLimit::end_of_stored);

  Request other = make_request(300, 1, 1);
  other.token_ids[200] += 1;
  const PromptReuse parted = reuse(other);
  EXPECT_EQ(parted.limit, ReuseLimit::no_state);  // of 192 shared tokens there was no state
  EXPECT_LT(parted.tokens, 192);
  EXPECT_EQ(parted.stored_tokens, 192);
  EXPECT_EQ(parted.diverged_at, 200);

  other.token_ids[201] += 1;  // now there is one
  const PromptReuse third = reuse(other);
  EXPECT_EQ(third.limit, ReuseLimit::diverged);
  EXPECT_EQ(third.tokens, 192);
  EXPECT_EQ(third.diverged_at, 201);

  EXPECT_EQ(lookups(bench, ReuseLimit::diverged).hits, 1);
  EXPECT_EQ(lookups(bench, ReuseLimit::salt_unknown).misses, 1);
  EXPECT_EQ(lookups(bench, ReuseLimit::prompt_short).misses, 1);
  EXPECT_EQ(lookups(bench, ReuseLimit::cache_empty).misses, 1);
  EXPECT_EQ(lookups(bench, ReuseLimit::complete).hits, 1);
}

TEST(ReuseReport, WithoutAMemoryForItReuseIsOff) {
  Bench bench(reusing_config(0));
  EXPECT_EQ(reuse_of(bench, make_request(300, 1, 1)).limit, ReuseLimit::cache_off);
}

TEST(ReuseReport, AStateThatHadToGoIsToldFromOneThatNeverWas) {
  const ReuseCircumstances usual{
      .wanted_tokens = 300, .keeps_prefixes = true, .stores_anything = true};
  PrefixReuse found{.tokens = 64, .kv_tokens = 192, .salt_known = true, .diverged_at = 200};
  EXPECT_EQ(explain_reuse(found, usual).limit, ReuseLimit::no_state);
  found.state_evicted = true;
  EXPECT_EQ(explain_reuse(found, usual).limit, ReuseLimit::state_evicted);
  EXPECT_EQ(explain_reuse(found, usual).diverged_at, 200);
}

TEST(FlushCache, ForgetsAllOrOneSaltAndIsNoEviction) {
  Bench bench(reusing_config());
  Request salted = make_request(300, 1, 1);
  salted.cache_salt = "a";
  reuse_of(bench, salted);
  reuse_of(bench, make_request(300, 1, 1));

  const CacheFlushed none = bench.loop->flush_cache({.salts = {{"b", "c"}}});
  EXPECT_EQ(none.tokens, 0);
  const CacheFlushed one = bench.loop->flush_cache({.salts = {{"b", "a"}}});
  bench.loop->check_invariants();
  EXPECT_EQ(one.tokens, 256);
  EXPECT_GT(one.bytes, 0U);
  EXPECT_EQ(reuse_of(bench, make_request(300, 1, 1)).tokens, 256);
  EXPECT_EQ(reuse_of(bench, salted).limit, ReuseLimit::salt_unknown);

  bench.loop->flush_cache({});
  EngineStatus status = bench.loop->status();
  EXPECT_EQ(status.kept_tokens, 0);
  EXPECT_EQ(status.kept_checkpoints, 0);
  EXPECT_EQ(status.kept_bytes, 0U);
  EXPECT_EQ(status.evicted_blocks + status.evicted_checkpoints, 0);
  EXPECT_EQ(status.metrics.flushed_blocks, 3 * 4);
  EXPECT_EQ(reuse_of(bench, salted).limit, ReuseLimit::cache_empty);
}

TEST(FlushCache, BetweenAnyTwoStepsItChangesNoAnswer) {
  const Request request = make_request(300, 40, 1);
  Bench bench(reusing_config());
  reuse_of(bench, request);
  std::vector<std::shared_ptr<GenerationStream>> streams;
  for (int i = 0; i < 12; ++i) {
    streams.push_back(bench.submit(request));
  }
  while (!bench.loop->is_idle()) {
    bench.step();
    bench.loop->flush_cache({});
    bench.loop->check_invariants();
  }
  for (const auto& stream : streams) {
    EXPECT_EQ(collect(*stream).answer, fake_answer(request, small_config()));
  }
}

}  // namespace
}  // namespace sluice
