// The engine's step, single-threaded and deterministic, on a model that betrays every mistake.
#include "engine/engine_loop.h"

#include <gtest/gtest.h>

#include <random>
#include <set>

#include "engine/fake_answer.h"
#include "engine/test_loop_bench.h"

namespace sluice {
namespace {

// The first token of a greedy answer, to be used as a stop id.
TokenId nth_token(const Request& request, std::size_t n) {
  return fake_answer(request, small_config()).token_ids.at(n);
}

Request random_request(std::mt19937_64& random, std::int64_t context_max) {
  const auto below = [&](std::int64_t n) {
    return static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(n));
  };
  static constexpr std::int64_t kEdges[] = {1, 31, 32, 33, 63, 64, 65, 127, 128, 129, 191, 193};
  const std::int64_t length = below(2) == 0 ? kEdges[below(12)] : 1 + below(200);
  Request request;
  request.id = std::to_string(random());
  for (std::int64_t i = 0; i < std::min(length, context_max - 1); ++i) {
    request.token_ids.push_back(static_cast<TokenId>(below(kNanToken)));
  }
  request.stop.tokens_max = below(5) == 0 ? below(300) : below(24);
  request.priority = below(4) == 0 ? below(5) - 2 : 0;
  request.stop.ignore_eos = below(3) == 0;
  request.stop.stop_token_ids = {static_cast<TokenId>(below(kFakeVocabSize)), 7};
  if (below(2) == 0) {
    request.sampling.temperature = 0.8F;
    request.sampling.top_k = static_cast<std::int32_t>(below(20));
    request.sampling.top_p = 0.9F;
    request.sampling.repetition_penalty = 1.2F;
    request.sampling.presence_penalty = 0.5F;
    request.sampling.seed = random();
  }
  if (below(3) == 0) {
    request.constraint = fake_constraint({.seed = random(),
                                          .tokens_max = 1 + below(40),
                                          .failing_at = below(4) == 0 ? below(20) : 1000});
  }
  return request;
}

TEST(EngineLoop, AnyBatchAndStepSizeGivesTheAnswerByDefinition) {
  std::mt19937_64 random(1);
  const auto below = [&](std::int64_t n) {
    return static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(n));
  };
  std::int64_t preemptions = 0;
  for (int round = 0; round < 60; ++round) {
    EngineConfig config{.context_max = 200 + below(200),
                        .sequences_max = 1 + below(9),
                        .queue_max = 100,
                        .prefill_step_max = 1 + below(below(2) == 0 ? 8 : 300),
                        .prefill_beside_decode_max = below(2) == 0 ? 0 : 1 + below(100)};
    config.sampled_vocab_size = below(2) == 0 ? 0 : 50;
    config.kv_tokens_max = below(2) == 0 ? 0 : config.context_max + below(300);
    const ModelOptions options{.step_tokens_max = 1 + below(below(2) == 0 ? 8 : 300),
                               .step_logit_rows_max = 1 + below(8)};
    Bench bench(config, options);
    std::vector<Request> requests;
    std::vector<std::shared_ptr<GenerationStream>> streams;
    while (requests.size() < 40) {
      requests.push_back(random_request(random, config.context_max));
      streams.push_back(bench.submit(requests.back()));
      for (std::int64_t steps = below(6); steps > 0; --steps) {
        bench.step();
      }
    }
    bench.run();
    for (std::size_t i = 0; i < requests.size(); ++i) {
      const Collected collected = collect(*streams[i]);
      ASSERT_EQ(collected.answer, fake_answer(requests[i], config))
          << "round " << round << " request " << i;
      ASSERT_EQ(collected.finished->usage.prompt_tokens, std::ssize(requests[i].token_ids));
      ASSERT_EQ(collected.finished->usage.completion_tokens,
                std::ssize(collected.answer.token_ids));
    }
    EXPECT_EQ(bench.loop->status().kv_blocks_used, 0);
    preemptions += bench.loop->status().preemptions;
  }
  EXPECT_GT(preemptions, 100);
}

TEST(EngineLoop, IdenticalRequestsHaveOneAnswer) {
  EngineConfig config = small_config();
  config.sequences_max = 8;
  Bench bench(config, {.step_tokens_max = 37, .step_logit_rows_max = 5});
  std::vector<std::shared_ptr<GenerationStream>> streams;
  streams.reserve(50);
  for (int i = 0; i < 50; ++i) {
    streams.push_back(bench.submit(make_request(150, 40)));
  }
  bench.run();
  std::set<std::vector<TokenId>> answers;
  for (const auto& stream : streams) {
    answers.insert(collect(*stream).answer.token_ids);
  }
  EXPECT_EQ(answers.size(), 1U);
  EXPECT_EQ(answers.begin()->size(), 40U);
}

TEST(EngineLoop, ComputesEveryTokenOnceAndAsksForNeededLogitsOnly) {
  Bench bench;
  const auto stream = bench.submit(make_request(150, 10));
  bench.run();
  EXPECT_EQ(collect(*stream).answer.token_ids.size(), 10U);
  EXPECT_EQ(bench.model.rows, 150 + 9);  // the last token is never computed
  EXPECT_EQ(bench.model.logit_rows, 10);
}

void expect_same_scores(const TokenEvent& scored, const TokenEvent& generated) {
  EXPECT_EQ(scored.token_id, generated.token_id);
  EXPECT_EQ(scored.logprob, generated.logprob);
  ASSERT_EQ(scored.top_logprobs.size(), generated.top_logprobs.size());
  for (std::size_t i = 0; i < scored.top_logprobs.size(); ++i) {
    EXPECT_EQ(scored.top_logprobs[i].token_id, generated.top_logprobs[i].token_id);
    EXPECT_EQ(scored.top_logprobs[i].logprob, generated.top_logprobs[i].logprob);
  }
}

// In steps of any size, beside others that preempt it, and though all of it is stored.
TEST(EngineLoop, AScoredPromptSaysWhatAGenerationSaid) {
  for (const std::int64_t score_step : {1, 7, 64}) {
    EngineConfig config = small_config();
    config.score_step_max = score_step;
    config.reuse_bytes = std::size_t{1} << 20;
    config.kv_tokens_max = 512;
    Bench bench(config, {.step_logit_rows_max = config.sequences_max + score_step});
    Request request = make_request(150, 40);
    request.sampling.logprobs = 3;
    const auto generating = bench.submit(request);
    bench.run();
    const Collected generated = collect(*generating);
    ASSERT_EQ(generated.tokens.size(), 40U);
    EXPECT_FALSE(generated.scored);

    request.token_ids.insert(request.token_ids.end(), generated.answer.token_ids.begin(),
                             generated.answer.token_ids.end());
    request.prompt_logprobs = 3;
    std::vector<std::shared_ptr<GenerationStream>> scoring;
    for (const std::int64_t tokens_max : {0, 3}) {
      request.stop.tokens_max = tokens_max;
      scoring.push_back(bench.submit(request));
    }
    bench.step();
    bench.step();
    Request urgent = make_request(300, 5, 2);
    urgent.priority = -1;
    const auto preempting = bench.submit(urgent);
    bench.run();
    EXPECT_GT(bench.loop->status().preemptions, 0);
    for (const auto& stream : scoring) {
      const Collected said = collect(*stream);
      ASSERT_TRUE(said.scored);
      ASSERT_EQ(said.scored->tokens.size(), 190U);
      EXPECT_FALSE(said.scored->tokens.front().logprob);
      for (std::size_t i = 0; i < 40; ++i) {
        expect_same_scores(said.scored->tokens[150 + i], generated.tokens[i]);
      }
      EXPECT_EQ(said.finished->usage.cached_tokens, 0);
      EXPECT_EQ(said.finished->reuse->limit, ReuseLimit::scored);
    }
  }
}

TEST(EngineLoop, AScoredPromptMayBeASingleToken) {
  EngineConfig config = small_config();
  config.score_step_max = 2;
  Bench bench(config, {.step_logit_rows_max = config.sequences_max + 2});
  for (const std::int64_t tokens_max : {0, 2}) {
    Request request = make_request(1, tokens_max);
    request.prompt_logprobs = 0;
    const auto stream = bench.submit(request);
    bench.run();
    const Collected said = collect(*stream);
    ASSERT_TRUE(said.scored);
    ASSERT_EQ(said.scored->tokens.size(), 1U);
    EXPECT_FALSE(said.scored->tokens.front().logprob);
    EXPECT_EQ(std::ssize(said.tokens), tokens_max);
  }
}

// `before` steps, then a cancel: the next step must not compute a row of it.
void expect_cancelled_after(int before, std::size_t tokens_before) {
  Bench bench;
  const auto victim = bench.submit(make_request(150, 50, 1));
  for (int i = 0; i < before; ++i) {
    bench.step();
  }
  victim->cancel();
  const auto other = bench.submit(make_request(20, 5, 2));
  const std::int64_t rows_before = bench.model.rows;
  bench.run();
  EXPECT_EQ(bench.model.rows - rows_before, 20 + 4);
  const Collected collected = collect(*victim);
  ASSERT_TRUE(collected.finished);
  EXPECT_EQ(collected.finished->reason, FinishReason::cancelled);
  EXPECT_EQ(collected.answer.token_ids.size(), tokens_before);
  EXPECT_EQ(collected.finished->usage.completion_tokens, static_cast<std::int64_t>(tokens_before));
  EXPECT_EQ(collect(*other).answer, fake_answer(make_request(20, 5, 2), small_config()));
  EXPECT_EQ(bench.loop->status().kv_blocks_used, 0);
}

TEST(EngineLoop, CancelWhileWaiting) {
  expect_cancelled_after(0, 0);
}

TEST(EngineLoop, CancelDuringPrefill) {
  expect_cancelled_after(2, 0);  // 128 of 150 prompt tokens are computed
}

TEST(EngineLoop, CancelDuringDecode) {
  expect_cancelled_after(7, 5);
}

TEST(EngineLoop, DroppingTheStreamCancels) {
  Bench bench;
  auto stream = bench.submit(make_request(10, 100));
  bench.step();
  EXPECT_EQ(bench.loop->status().running, 1);
  stream.reset();
  bench.step();
  EXPECT_TRUE(bench.loop->is_idle());
  EXPECT_EQ(bench.model.rows, 10);
}

TEST(EngineLoop, CancelAfterTheEndChangesNothing) {
  Bench bench;
  const auto stream = bench.submit(make_request(10, 2));
  bench.run();
  stream->cancel();
  bench.step();
  EXPECT_EQ(collect(*stream).answer.reason, FinishReason::length);
}

// Nobody reads meanwhile. Each ends in the first step after its deadline and frees its place.
TEST(EngineLoop, DeadlinesEndWhatWaitsAndWhatRuns) {
  EngineConfig config = small_config();
  config.sequences_max = 2;
  Bench bench(config);
  const auto within = [&](Request request, double seconds) {
    request.deadline = bench.clock.now() + std::chrono::duration_cast<Clock::TimePoint::duration>(
                                               std::chrono::duration<double>(seconds));
    return bench.submit(std::move(request));
  };
  const auto expect_late = [](GenerationStream& stream, std::size_t tokens) {
    const Collected said = collect(stream);
    ASSERT_TRUE(said.finished);
    EXPECT_EQ(said.finished->reason, FinishReason::error);
    ASSERT_TRUE(said.finished->error);
    EXPECT_EQ(said.finished->error->code, ErrorCode::deadline);
    EXPECT_EQ(said.answer.token_ids.size(), tokens);
    EXPECT_EQ(said.finished->usage.completion_tokens, static_cast<std::int64_t>(tokens));
  };
  const auto decoding = within(make_request(10, 200, 1), 3.5);
  const auto in_prefill = within(make_request(400, 9, 2), 2.5);
  const auto waiting = within(make_request(10, 9, 3), 1.5);
  const auto on_time = within(make_request(10, 9, 4), 1000.0);
  bench.step();
  bench.clock.advance(1.0);
  bench.step();
  EXPECT_EQ(bench.loop->status().waiting, 2);
  bench.clock.advance(1.0);
  bench.step();  // 2 s
  EXPECT_EQ(bench.loop->status().waiting, 1);
  EXPECT_EQ(bench.loop->status().running, 2);
  expect_late(*waiting, 0);
  bench.clock.advance(0.5);
  bench.step();  // exactly its deadline: too late
  expect_late(*in_prefill, 0);
  EXPECT_EQ(bench.loop->status().waiting, 0) << "its place is taken at once";
  bench.clock.advance(1.0);
  bench.step();
  expect_late(*decoding, 4);
  bench.run();
  EXPECT_EQ(collect(*on_time).answer, fake_answer(make_request(10, 9, 4), config));
  EXPECT_EQ(bench.loop->status().kv_blocks_used, 0);
}

TEST(EngineLoop, ADeadlineThatPassedBeforeTheFirstStepComputesNothing) {
  Bench bench;
  Request request = make_request(10, 5);
  request.deadline = bench.clock.now();
  const auto stream = bench.submit(request);
  bench.run();
  EXPECT_EQ(collect(*stream).answer.reason, FinishReason::error);
  EXPECT_EQ(bench.model.rows, 0);
}

TEST(EngineLoop, PrefillOnly) {
  Bench bench;
  const auto stream = bench.submit(make_request(100, 0));
  bench.run();
  const Collected collected = collect(*stream);
  EXPECT_EQ(collected.answer, (FakeAnswer{{}, FinishReason::length}));
  EXPECT_EQ(bench.model.rows, 100);
  EXPECT_EQ(bench.model.logit_rows, 0);
  EXPECT_EQ(collected.finished->usage.completion_tokens, 0);
}

TEST(EngineLoop, TheContextLimitsTheAnswer) {
  Bench bench;
  const auto stream = bench.submit(make_request(500, 100));
  const auto last = bench.submit(make_request(511, 100));
  bench.run();
  EXPECT_EQ(collect(*stream).answer.token_ids.size(), 12U);
  EXPECT_EQ(collect(*last).answer.token_ids.size(), 1U);
}

TEST(EngineLoop, StopTokensEndTheAnswerUnlessIgnored) {
  Request request = make_request(30, 10);
  const TokenId stop = nth_token(request, 4);
  request.stop.stop_token_ids = {55, stop};
  Bench bench;
  const auto stopped = bench.submit(request);
  request.stop.ignore_eos = true;
  const auto ignored = bench.submit(request);
  bench.run();
  const Collected collected = collect(*stopped);
  EXPECT_EQ(collected.answer.reason, FinishReason::stop);
  EXPECT_EQ(collected.finished->stop_token_id, stop);
  EXPECT_LE(collected.answer.token_ids.size(), 4U);
  EXPECT_EQ(collected.finished->usage.completion_tokens, std::ssize(collected.answer.token_ids));
  const Collected whole = collect(*ignored);
  EXPECT_EQ(whole.answer.reason, FinishReason::length);
  EXPECT_EQ(whole.answer.token_ids.size(), 10U);
  EXPECT_FALSE(whole.finished->stop_token_id);
}

TEST(EngineLoop, IdsBeyondTheSampledVocabularyAreNeverChosen) {
  EngineConfig config = small_config();
  config.sampled_vocab_size = 4;
  Bench bench(config);
  const auto stream = bench.submit(make_request(30, 200));
  bench.run();
  const Collected collected = collect(*stream);
  EXPECT_EQ(collected.answer.token_ids.size(), 200U);
  for (const TokenId token : collected.answer.token_ids) {
    EXPECT_LT(token, 4);
  }
}

TEST(EngineLoop, BrokenLogitsEndThatRequestAlone) {
  Bench bench;
  Request broken = make_request(30, 20, 1);
  broken.id = "the broken one";
  broken.token_ids.back() = kNanToken;
  const auto bad = bench.submit(broken);
  const auto good = bench.submit(make_request(30, 20, 2));
  bench.run();
  const Collected collected = collect(*bad);
  EXPECT_EQ(collected.answer, (FakeAnswer{{}, FinishReason::error}));
  ASSERT_TRUE(collected.finished->error);
  EXPECT_EQ(collected.finished->error->code, ErrorCode::internal);
  EXPECT_NE(collected.finished->error->message.find("the broken one"), std::string::npos);
  EXPECT_NE(collected.finished->error->message.find("position 30"), std::string::npos);
  EXPECT_EQ(collect(*good).answer, fake_answer(make_request(30, 20, 2), small_config()));
  EXPECT_EQ(bench.loop->status().kv_blocks_used, 0);
}

TEST(EngineLoop, AConstraintNarrowsTheChoiceOfItsRequestAlone) {
  Bench bench;
  Request request = make_request(30, 40);
  const auto free = bench.submit(request);
  request.constraint = fake_constraint({.tokens_max = 20});
  const auto first = bench.submit(request);
  const auto second = bench.submit(request);  // starts a constraint of its own
  bench.run();
  const FakeAnswer constrained = collect(*first).answer;
  EXPECT_EQ(constrained, fake_answer(request, small_config()));
  EXPECT_EQ(constrained.token_ids.size(), 20U);
  EXPECT_EQ(constrained.reason, FinishReason::stop);
  EXPECT_EQ(collect(*second).answer, constrained);
  request.constraint = nullptr;
  EXPECT_EQ(collect(*free).answer, fake_answer(request, small_config()));
  EXPECT_NE(fake_answer(request, small_config()).token_ids, constrained.token_ids);
}

// Allows tokens[0], then tokens[1], ...; nothing after the last.
class ForcedTokens final : public TokenConstraint, public ConstraintFactory {
 public:
  explicit ForcedTokens(std::vector<TokenId> tokens) : tokens_(std::move(tokens)) {}
  Result<std::unique_ptr<TokenConstraint>> start() const override {
    return std::make_unique<ForcedTokens>(tokens_);
  }
  Result<bool> narrow(std::span<std::uint32_t> allowed) override {
    std::ranges::fill(allowed, 0);
    if (next_ < tokens_.size()) {
      const auto id = static_cast<std::size_t>(tokens_[next_]);
      allowed[id / 32] = std::uint32_t{1} << (id % 32);
    }
    return true;
  }
  Result<void> accept(TokenId token) override {
    EXPECT_EQ(token, tokens_.at(next_++));
    return {};
  }
  Result<bool> is_finished() override { return false; }

 private:
  std::vector<TokenId> tokens_;
  std::size_t next_ = 0;
};

TEST(EngineLoop, ATokenIsForcedByAllowingNoOther) {
  for (const float temperature : {0.0F, 1.0F}) {
    Bench bench;
    Request request = make_request(30, 5);
    request.sampling.temperature = temperature;
    request.sampling.logprobs = 2;
    request.sampling.logit_bias = {{59, -100.0F}};
    request.constraint = std::make_shared<ForcedTokens>(std::vector<TokenId>{59, 0, 31, 32, 59});
    const auto stream = bench.submit(request);
    bench.run();
    EXPECT_TRUE(std::holds_alternative<GenerationAdmitted>(*stream->try_next()));
    const auto token = std::get<TokenEvent>(*stream->try_next());
    EXPECT_EQ(token.token_id, 59);
    // The log-probability is that of the model, which would rather have said another token.
    EXPECT_GT(token.top_logprobs.at(0).logprob, *token.logprob);
    EXPECT_GT(*token.logprob, -20.0F);
    EXPECT_EQ(collect(*stream).answer.token_ids, (std::vector<TokenId>{0, 31, 32, 59}));
  }
}

TEST(EngineLoop, AConstraintThatFailsOrAllowsNothingEndsThatRequestAlone) {
  Bench bench;
  Request request = make_request(30, 20);
  request.id = "the stuck one";
  request.constraint = std::make_shared<ForcedTokens>(std::vector<TokenId>{1, 2, 60});
  const auto stuck = bench.submit(request);  // 60 is beyond the sampled vocabulary
  request.constraint = fake_constraint({.failing_at = 4});
  const auto failing = bench.submit(request);
  const auto good = bench.submit(make_request(30, 20, 2));
  bench.run();
  const Collected collected = collect(*stuck);
  EXPECT_EQ(collected.answer, (FakeAnswer{{1, 2}, FinishReason::error}));
  EXPECT_EQ(collected.finished->error->code, ErrorCode::invalid_argument);
  EXPECT_NE(collected.finished->error->message.find("the stuck one"), std::string::npos);
  EXPECT_NE(collected.finished->error->message.find("position 32"), std::string::npos);
  const Collected failed = collect(*failing);
  EXPECT_EQ(failed.answer.token_ids.size(), 4U);
  EXPECT_EQ(failed.finished->error->code, ErrorCode::resource_exhausted);
  EXPECT_EQ(collect(*good).answer, fake_answer(make_request(30, 20, 2), small_config()));
  EXPECT_EQ(bench.loop->status().kv_blocks_used, 0);
}

TEST(EngineLoop, AnAnswerThatIsCompleteAtItsLimitIsComplete) {
  Bench bench;
  Request request = make_request(30, 7);
  request.constraint = fake_constraint({.tokens_max = 7});
  const auto stream = bench.submit(request);
  bench.run();
  const Collected collected = collect(*stream);
  EXPECT_EQ(collected.answer.token_ids.size(), 7U);
  EXPECT_EQ(collected.answer.reason, FinishReason::stop);
  EXPECT_FALSE(collected.finished->stop_token_id);
}

// Memory for two whole answers and a half: more may start, and who does not fit goes on later.
TEST(EngineLoop, WhenMemoryRunsOutAnswersAreTheSame) {
  for (const std::size_t reuse_bytes : {0UL, 3000UL, 1UL << 20}) {
    EngineConfig config = small_config();
    config.kv_tokens_max = 640;  // ten blocks
    config.reuse_bytes = reuse_bytes;
    Bench bench(config);
    std::vector<std::shared_ptr<GenerationStream>> streams;
    streams.reserve(10);
    for (int i = 0; i < 10; ++i) {
      streams.push_back(bench.submit(make_request(100, 150, i)));  // two blocks, later four each
    }
    std::int64_t running = 0;
    while (!bench.loop->is_idle()) {
      bench.step();
      running = std::max(running, bench.loop->status().running);
    }
    EXPECT_EQ(running, 3);
    EXPECT_GT(bench.loop->status().preemptions, 0);
    for (int i = 0; i < 10; ++i) {
      const Collected collected = collect(*streams[static_cast<std::size_t>(i)]);
      EXPECT_EQ(collected.answer, fake_answer(make_request(100, 150, i), config));
      EXPECT_EQ(collected.finished->usage.cached_tokens, 0);  // its own work does not count
    }
    EXPECT_EQ(bench.loop->status().metrics.prompt_tokens.sum(), 1000);
  }
}

// The cache is where a preempted sequence waits: little of it is computed again.
TEST(EngineLoop, APreemptedSequenceGoesOnFromTheCache) {
  EngineConfig config = small_config();
  config.sequences_max = 1;
  config.reuse_bytes = 1 << 20;
  Bench bench(config);
  const auto slow = bench.submit(make_request(200, 200, 1));
  for (int i = 0; i < 100; ++i) {
    bench.step();
  }
  Request urgent = make_request(20, 5, 2);
  urgent.priority = -1;
  const auto fast = bench.submit(urgent);
  for (int i = 0; i < 5; ++i) {
    bench.step();
  }
  EXPECT_EQ(collect(*fast).answer, fake_answer(urgent, config));
  bench.run();
  EXPECT_EQ(collect(*slow).answer, fake_answer(make_request(200, 200, 1), config));
  EXPECT_EQ(bench.loop->status().preemptions, 1);
  EXPECT_LE(bench.model.rows, 200 + 199 + 20 + 4 + 64);
}

// Once the scores were delivered its prompt is read like any other, in large steps.
TEST(EngineLoop, APreemptedSequenceIsScoredOnce) {
  EngineConfig config = small_config();
  config.sequences_max = 1;
  config.score_step_max = 8;
  Bench bench(config, {.step_logit_rows_max = config.sequences_max + config.score_step_max});
  Request scored = make_request(192, 40, 1);
  scored.prompt_logprobs = 0;
  const auto slow = bench.submit(scored);
  for (int i = 0; i < 192 / 8 + 20; ++i) {  // the last step of the prompt says a token
    bench.step();
  }
  Request urgent = make_request(20, 5, 2);
  urgent.priority = -1;
  const auto fast = bench.submit(urgent);
  bench.run();
  EXPECT_EQ(collect(*fast).answer, fake_answer(urgent, config));
  const Collected said = collect(*slow);
  EXPECT_EQ(said.answer, fake_answer(make_request(192, 40, 1), config));
  EXPECT_TRUE(said.scored);
  const std::int64_t again = 4;  // 192 + 21 tokens, 64 in a step
  EXPECT_EQ(bench.loop->status().steps, 192 / 8 + 20 + 5 + again + 40 - 22);
}

TEST(EngineLoop, APreemptedSequenceCanBeCancelled) {
  EngineConfig config = small_config();
  config.sequences_max = 1;
  Bench bench(config);
  const auto slow = bench.submit(make_request(200, 200, 1));
  for (int i = 0; i < 10; ++i) {
    bench.step();
  }
  Request urgent = make_request(20, 5, 2);
  urgent.priority = -1;
  const auto fast = bench.submit(urgent);
  bench.step();
  slow->cancel();
  bench.run();
  EXPECT_EQ(collect(*slow).answer.reason, FinishReason::cancelled);
  EXPECT_EQ(collect(*fast).answer, fake_answer(urgent, config));
  EXPECT_EQ(bench.loop->status().kv_blocks_used, 0);
}

TEST(EngineLoop, TimingsSplitQueuePrefillAndDecode) {
  EngineConfig config = small_config();
  config.sequences_max = 1;
  Bench bench(config);
  bench.model.on_forward = [&bench](const ForwardBatch&) { bench.clock.advance(1.0); };
  const auto first = bench.submit(make_request(10, 3, 1));
  const auto second = bench.submit(make_request(100, 4, 2));  // two steps of prefill
  bench.run();
  const Timings timings = collect(*first).finished->timings;
  EXPECT_DOUBLE_EQ(timings.queue_seconds, 0.0);
  EXPECT_DOUBLE_EQ(timings.prefill_seconds, 1.0);
  EXPECT_DOUBLE_EQ(timings.decode_seconds, 2.0);
  const Timings later = collect(*second).finished->timings;
  EXPECT_DOUBLE_EQ(later.queue_seconds, 3.0);
  EXPECT_DOUBLE_EQ(later.prefill_seconds, 2.0);
  EXPECT_DOUBLE_EQ(later.decode_seconds, 3.0);
}

TEST(EngineLoop, LogprobsComeWithTheTokens) {
  Bench bench;
  Request request = make_request(10, 3);
  request.sampling.logprobs = 5;
  const auto stream = bench.submit(request);
  bench.run();
  EXPECT_TRUE(std::holds_alternative<GenerationAdmitted>(*stream->try_next()));
  for (int i = 0; i < 3; ++i) {
    const auto token = std::get<TokenEvent>(*stream->try_next());
    ASSERT_EQ(token.top_logprobs.size(), 5U);
    EXPECT_EQ(token.top_logprobs[0].token_id, token.token_id);
    EXPECT_EQ(token.top_logprobs[0].logprob, token.logprob);
  }
}

}  // namespace
}  // namespace sluice
