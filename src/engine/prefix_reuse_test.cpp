// Prefix reuse on a model that betrays every wrong block, state or position: whatever was kept,
// shared, given up or cancelled before, an answer is the answer by definition.
#include <gtest/gtest.h>

#include <map>
#include <random>
#include <string>

#include "engine/checkpoint_policy.h"
#include "engine/test_loop_bench.h"

namespace sluice {
namespace {

constexpr std::size_t kPlenty = 1 << 20;

EngineConfig reusing_config(std::size_t reuse_bytes = kPlenty) {
  EngineConfig config = small_config();
  config.context_max = 2048;
  config.reuse_bytes = reuse_bytes;
  return config;
}

std::int64_t cached_tokens(GenerationStream& stream) {
  const Collected collected = collect(stream);
  EXPECT_EQ(collected.admitted->cached_tokens, collected.finished->usage.cached_tokens);
  return collected.finished->usage.cached_tokens;
}

Request append(const Request& request, std::int64_t tokens, TokenId first) {
  Request longer = request;
  const Request more = make_request(tokens, 1, first);
  longer.token_ids.insert(longer.token_ids.end(), more.token_ids.begin(), more.token_ids.end());
  return longer;
}

TEST(PrefixReuse, TheSamePromptAgainComputesItsLastBlock) {
  for (const std::int64_t length : {64, 65, 127, 128, 129, 200, 256, 1000}) {
    Bench bench(reusing_config());
    const Request request = make_request(length, 5);
    const auto cold = bench.submit(request);
    bench.run();
    const FakeAnswer answer = collect(*cold).answer;
    const std::int64_t rows_before = bench.model.rows;
    const auto warm = bench.submit(request);
    bench.run();
    const Collected again = collect(*warm);
    EXPECT_EQ(again.answer, answer);
    EXPECT_EQ(again.finished->usage.cached_tokens, (length - 1) / 64 * 64) << length;
    EXPECT_EQ(bench.model.rows - rows_before, length - (length - 1) / 64 * 64 + 4) << length;
  }
}

TEST(PrefixReuse, AConversationGoesOnAfterTheAnswer) {
  Bench bench(reusing_config());
  Request turn = make_request(300, 150);
  const auto first = bench.submit(turn);
  bench.run();
  const FakeAnswer answer = collect(*first).answer;
  ASSERT_EQ(answer.token_ids.size(), 150U);
  turn.token_ids.insert(turn.token_ids.end(), answer.token_ids.begin(), answer.token_ids.end());
  const Request next = append(turn, 40, 5);
  const auto second = bench.submit(next);
  bench.run();
  const Collected collected = collect(*second);
  EXPECT_EQ(collected.answer, fake_answer(next, reusing_config()));
  EXPECT_EQ(collected.finished->usage.cached_tokens, 448);  // 449 of 450 tokens were computed
}

// The first time two prompts part, the second finds the last mark; from then on the branch is kept.
TEST(PrefixReuse, ABranchIsRememberedWhenItIsSeen) {
  Bench bench(reusing_config());
  const Request common = make_request(1500, 3, 1);
  std::vector<std::int64_t> reused;
  for (TokenId tail = 2; tail < 6; ++tail) {
    const Request request = append(common, 500, tail);
    const auto stream = bench.submit(request);
    bench.run();
    const Collected collected = collect(*stream);
    EXPECT_EQ(collected.answer, fake_answer(request, reusing_config()));
    reused.push_back(collected.finished->usage.cached_tokens);
  }
  EXPECT_EQ(reused, (std::vector<std::int64_t>{0, 1280, 1472, 1472}));
}

TEST(PrefixReuse, AStablePositionIsKeptAtOnce) {
  Bench bench(reusing_config());
  Request request = append(make_request(1100, 3, 1), 500, 2);
  request.stable_positions = {700, 1100};
  const auto first = bench.submit(request);
  bench.run();
  const auto other = bench.submit(append(make_request(1100, 3, 1), 300, 3));
  const auto earlier = bench.submit(append(make_request(700, 3, 1), 300, 4));
  bench.run();
  EXPECT_EQ(cached_tokens(*other), 1088);
  EXPECT_EQ(cached_tokens(*earlier), 640);
}

// A state as large as 26 blocks, as in real models, and memory for few of them: marks go first,
// also where one stands right before the boundary.
TEST(PrefixReuse, WhereMemoryIsShortBoundariesOutliveMarks) {
  constexpr std::size_t kStateBytes = 26 * kKvBlockTokens * sizeof(std::uint64_t);
  for (const std::int64_t boundary : {1870, 1800, 1930, 1662}) {
    Bench bench(reusing_config(14 * kStateBytes), {}, kStateBytes);
    for (TokenId conversation = 1; conversation < 9; ++conversation) {
      Request common = make_request(boundary, 1, conversation);
      Request request = append(common, 90, 20);
      request.stable_positions = {boundary};
      const auto first = bench.submit(request);
      bench.run();
      const Request question = append(common, 90, 21);
      const auto other = bench.submit(question);
      bench.run();
      const Collected collected = collect(*other);
      EXPECT_EQ(collected.answer, fake_answer(question, reusing_config()));
      EXPECT_EQ(collected.finished->usage.cached_tokens, boundary / 64 * 64)
          << boundary << ", " << conversation;
    }
  }
}

TEST(PrefixReuse, ConcurrentRequestsComputeTheirCommonPrefixOnce) {
  EngineConfig config = reusing_config();
  config.sequences_max = 16;
  Bench bench(config, {.step_tokens_max = 512, .step_logit_rows_max = 16});
  std::vector<std::shared_ptr<GenerationStream>> streams;
  std::vector<Request> requests;
  for (TokenId tail = 0; tail < 16; ++tail) {
    requests.push_back(append(make_request(1000, 4, 1), 50, 2 + tail));
    streams.push_back(bench.submit(requests.back()));
  }
  bench.run();
  for (std::size_t i = 0; i < streams.size(); ++i) {
    const Collected collected = collect(*streams[i]);
    EXPECT_EQ(collected.answer, fake_answer(requests[i], config));
    EXPECT_GE(collected.finished->usage.cached_tokens, i == 0 ? 0 : 960) << i;
  }
  EXPECT_EQ(bench.model.rows, 960 + 16 * (90 + 3));
}

TEST(PrefixReuse, FollowersGoOnWhenTheirLeaderIsCancelled) {
  Bench bench(reusing_config());
  const auto leader = bench.submit(make_request(1000, 4, 1));
  const auto follower = bench.submit(make_request(1000, 4, 1));
  for (int i = 0; i < 5; ++i) {
    bench.step();
  }
  leader->cancel();
  bench.run();
  const Collected collected = collect(*follower);
  EXPECT_EQ(collected.answer, fake_answer(make_request(1000, 4, 1), reusing_config()));
  EXPECT_EQ(collected.finished->usage.cached_tokens, 256);  // the leader had computed 320
  EXPECT_EQ(bench.model.rows, 320 + 1000 - 256 + 3);
}

TEST(PrefixReuse, WhenALeaderGoesAnotherTakesOver) {
  EngineConfig config = reusing_config();
  config.sequences_max = 16;
  Bench bench(config, {.step_tokens_max = 512, .step_logit_rows_max = 16});
  std::vector<std::shared_ptr<GenerationStream>> streams;
  for (TokenId tail = 0; tail < 16; ++tail) {
    streams.push_back(bench.submit(append(make_request(1900, 4, 1), 20, 2 + tail)));
  }
  bench.step();
  bench.step();
  streams[0]->cancel();
  bench.run();
  for (std::size_t i = 1; i < streams.size(); ++i) {
    EXPECT_GE(collect(*streams[i]).finished->usage.cached_tokens, i == 1 ? 0 : 1856) << i;
  }
  EXPECT_LE(bench.model.rows, 1900 + 16 * 100 + 512);
}

// A cache full of states that look more valuable: the one that others wait for is made all the
// same.
TEST(PrefixReuse, TheStateThatOthersWaitForIsAlwaysMade) {
  const std::size_t slot_bytes = FakeModel().cache_layout().state_slot_bytes;
  EngineConfig config = reusing_config(6 * slot_bytes);
  config.sequences_max = 8;
  config.kv_tokens_max = 8 * 1024 + 2048;
  Bench bench(config, {.step_tokens_max = 512, .step_logit_rows_max = 8});
  for (int round = 0; round < 40; ++round) {
    const auto popular = bench.submit(make_request(1900, 1, static_cast<TokenId>(round % 4)));
    bench.run();
  }
  const std::int64_t rows_before = bench.model.rows;
  std::vector<std::shared_ptr<GenerationStream>> streams;
  for (TokenId tail = 0; tail < 8; ++tail) {
    streams.push_back(bench.submit(append(make_request(900, 4, 50), 50, 20 + tail)));
  }
  bench.run();
  EXPECT_LE(bench.model.rows - rows_before, 950 + 8 * 120);
}

TEST(PrefixReuse, AnAbandonedPrefillIsNotLost) {
  Bench bench(reusing_config());
  const auto gone = bench.submit(make_request(1000, 4, 1));
  for (int i = 0; i < 9; ++i) {
    bench.step();
  }
  gone->cancel();
  bench.step();
  const auto again = bench.submit(make_request(1000, 4, 1));
  bench.run();
  EXPECT_EQ(cached_tokens(*again), 512);
}

TEST(PrefixReuse, SaltsShareNothing) {
  Bench bench(reusing_config());
  Request request = make_request(500, 4, 1);
  const auto first = bench.submit(request);
  bench.run();
  request.cache_salt = "tenant";
  const auto other = bench.submit(request);
  const auto follower = bench.submit(request);  // same salt: computed once
  request.cache_salt = "another";
  const auto third = bench.submit(request);
  bench.run();
  EXPECT_EQ(cached_tokens(*other), 0);
  EXPECT_EQ(cached_tokens(*follower), 448);
  EXPECT_EQ(cached_tokens(*third), 0);
}

TEST(PrefixReuse, OffMeansOff) {
  Bench bench(reusing_config(0));
  const auto first = bench.submit(make_request(500, 4, 1));
  bench.run();
  const auto again = bench.submit(make_request(500, 4, 1));
  bench.run();
  EXPECT_EQ(cached_tokens(*again), 0);
  EXPECT_EQ(bench.loop->status().kept_blocks, 0);
}

TEST(PrefixReuse, ACheckpointOfAnAnswerReplacesTheOneBefore) {
  Bench bench(reusing_config());
  const auto stream = bench.submit(make_request(70, 900));
  bench.run();
  EXPECT_EQ(bench.loop->status().kept_checkpoints, 2);  // end of the prompt, end of the answer
}

// A pin of some whole blocks at the beginning of a request.
Request pin_of(const Request& request, std::int64_t blocks, const std::string& id) {
  Request pin;
  pin.id = id;
  pin.cache_salt = request.cache_salt;
  pin.token_ids.assign(request.token_ids.begin(), request.token_ids.begin() + blocks * 64);
  pin.pin = PinLabel{.id = id};
  return pin;
}

// Each pinned prefix is still there, whole: a prompt that goes on from it computes the rest alone.
void check_pins(Bench& bench, const EngineConfig& config,
                const std::map<std::string, Request>& pins) {
  for (const PinnedPrefix& pinned : bench.loop->list_pins()) {
    Request request = append(pins.at(pinned.id), 1, 7);
    request.pin.reset();
    request.stop.tokens_max = 3;
    const auto stream = bench.submit(request);
    bench.run();
    const Collected collected = collect(*stream);
    ASSERT_EQ(collected.answer, fake_answer(request, config)) << pinned.id;
    ASSERT_EQ(collected.finished->usage.cached_tokens, pinned.tokens) << pinned.id;
  }
}

// Everything at once, thousands of requests: shared prefixes, cuts, batches, cancels, salts, pins,
// budgets from nothing to plenty.
TEST(PrefixReuse, WhateverHappenedBeforeTheAnswerIsTheSame) {
  std::mt19937_64 random(3);
  const auto below = [&](std::int64_t n) {
    return static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(n));
  };
  std::int64_t reused = 0;
  std::int64_t evicted = 0;
  std::int64_t preempted = 0;
  std::int64_t pinned = 0;
  for (int round = 0; round < 60; ++round) {
    EngineConfig config{.context_max = 500 + below(300),
                        .sequences_max = 1 + below(9),
                        .queue_max = 100,
                        .prefill_step_max = 1 + below(below(2) == 0 ? 40 : 400),
                        .prefill_beside_decode_max = below(2) == 0 ? 0 : 1 + below(400),
                        .sampled_vocab_size = kNanToken};
    config.kv_tokens_max = below(2) == 0 ? 0 : config.context_max + below(300);
    config.reuse_bytes = static_cast<std::size_t>(below(2) == 0 ? below(4000) : 100000);
    Bench bench(config, {.step_tokens_max = 1 + below(below(2) == 0 ? 40 : 400),
                         .step_logit_rows_max = 1 + below(8)});
    std::vector<Request> requests;
    std::vector<std::shared_ptr<GenerationStream>> streams;
    std::map<std::string, Request> pins;
    std::map<std::string, std::shared_ptr<GenerationStream>> pin_streams;
    while (requests.size() < 60) {
      if (below(6) == 0 && !requests.empty() && std::ssize(pins) < 40) {
        const Request& some = requests[static_cast<std::size_t>(below(std::ssize(requests)))];
        const std::int64_t blocks = std::ssize(some.token_ids) / 64;
        const std::string id = "pin" + std::to_string(pins.size());
        if (blocks > 0) {
          pins[id] = pin_of(some, 1 + below(blocks), id);
          pin_streams[id] = bench.submit(pins[id]);
        }
      }
      if (below(12) == 0 && !pins.empty()) {
        bench.loop->unpin("pin" + std::to_string(below(std::ssize(pins))));
      }
      if (below(40) == 0) {
        bench.loop->flush_cache({.keep_pins = below(4) != 0});
      }
      Request request = make_request(1 + below(350), 1 + below(80), 1);
      if (below(3) == 0 && !requests.empty()) {  // goes on after an earlier one
        const Request& earlier = requests[static_cast<std::size_t>(below(std::ssize(requests)))];
        request.token_ids = earlier.token_ids;
        const auto answer = fake_answer(earlier, config).token_ids;
        request.token_ids.insert(request.token_ids.end(), answer.begin(), answer.end());
      }
      request = append(request, 1 + below(60), static_cast<TokenId>(2 + below(3)));
      request.token_ids.resize(
          std::min(request.token_ids.size(), static_cast<std::size_t>(config.context_max) - 1));
      request.cache_salt = below(4) == 0 ? "tenant" : "";
      request.priority = below(4) == 0 ? below(5) - 2 : 0;
      if (below(2) == 0) {
        request.stable_positions = {below(std::ssize(request.token_ids) + 1)};
      }
      if (below(3) == 0) {
        request.sampling.temperature = 0.8F;
        request.sampling.seed = random();
      }
      requests.push_back(request);
      streams.push_back(bench.submit(request));
      for (std::int64_t steps = below(12); steps > 0; --steps) {
        bench.step();
      }
      if (below(8) == 0) {
        streams[static_cast<std::size_t>(below(std::ssize(streams)))]->cancel();
      }
    }
    bench.run();
    for (std::size_t i = 0; i < requests.size(); ++i) {
      const Collected collected = collect(*streams[i]);
      if (collected.answer.reason != FinishReason::cancelled) {
        ASSERT_EQ(collected.answer, fake_answer(requests[i], config))
            << "round " << round << " request " << i;
      }
      ASSERT_LT(collected.finished->usage.cached_tokens, std::ssize(requests[i].token_ids));
    }
    for (const auto& [id, stream] : pin_streams) {
      const GenerationFinished finished = collect(*stream).finished.value();
      ASSERT_EQ(finished.reason == FinishReason::length, finished.pinned.has_value()) << id;
      ASSERT_TRUE(finished.pinned || finished.error->code == ErrorCode::resource_exhausted) << id;
      pinned += finished.pinned ? 1 : 0;
    }
    ASSERT_NO_FATAL_FAILURE(check_pins(bench, config, pins)) << "round " << round;
    const EngineStatus status = bench.loop->status();
    reused += status.metrics.reused_tokens;
    evicted += status.evicted_checkpoints + status.evicted_blocks;
    preempted += status.preemptions;
    EXPECT_LE(status.cache_bytes, status.cache_bytes_max);
  }
  EXPECT_GT(reused, 50000);
  EXPECT_GT(evicted, 500);
  EXPECT_GT(preempted, 100);
  EXPECT_GT(pinned, 100);
}

TEST(CheckpointPolicy, WeighsEndsBoundariesAnswersAndMarks) {
  const std::vector<std::int64_t> keep_at{100, 640};
  const auto weight = [&](std::int64_t tokens) { return checkpoint_weight(1000, keep_at, tokens); };
  EXPECT_EQ(weight(64), 4.0);  // 100 lies in the block after it
  EXPECT_EQ(weight(128), 0.0);
  EXPECT_EQ(weight(256), 1.0);
  EXPECT_EQ(weight(512), 0.5);  // the next one is 128 tokens on
  EXPECT_EQ(weight(576), 0.0);
  EXPECT_EQ(weight(768), 0.75);
  EXPECT_EQ(weight(640), 4.0);
  EXPECT_EQ(weight(960), 4.0);                       // last whole block of the prompt
  EXPECT_EQ(weight(1024), 2.0);                      // inside the answer
  EXPECT_EQ(checkpoint_weight(1024, {}, 960), 4.0);  // for the same prompt again
  EXPECT_EQ(checkpoint_weight(1024, {}, 1024), 4.0);
}

}  // namespace
}  // namespace sluice
