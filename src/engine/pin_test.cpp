// Requests to pin: what is computed for them, what they survive, when they end.
#include <gtest/gtest.h>

#include <future>
#include <thread>

#include "engine/test_loop_bench.h"

namespace sluice {
namespace {

constexpr std::size_t kPlenty = 1 << 20;

EngineConfig pinning_config(std::size_t reuse_bytes = kPlenty) {
  EngineConfig config = small_config();
  config.context_max = 2048;
  config.reuse_bytes = reuse_bytes;
  return config;
}

Request pin_request(std::int64_t tokens, TokenId first = 1, const std::string& id = "pin") {
  Request request = make_request(tokens, 0, first);
  request.pin = PinLabel{.id = id, .name = "name of " + id};
  return request;
}

GenerationFinished finish(Bench& bench, Request request) {
  const auto stream = bench.submit(std::move(request));
  bench.run();
  return collect(*stream).finished.value();
}

// Answers to other prompts, until whatever may go is gone.
void press(Bench& bench) {
  for (TokenId first = 2; first < 40; ++first) {
    finish(bench, make_request(1900, 1, first));
  }
}

TEST(Pin, IsComputedOnceAndSaysWhatItKeeps) {
  Bench bench(pinning_config());
  const GenerationFinished made = finish(bench, pin_request(640));
  EXPECT_EQ(made.reason, FinishReason::length);
  ASSERT_TRUE(made.pinned);
  EXPECT_TRUE(made.pinned->is_new);
  EXPECT_EQ(made.pinned->prefix.id, "pin");
  EXPECT_EQ(made.pinned->prefix.name, "name of pin");
  EXPECT_EQ(made.pinned->prefix.tokens, 640);
  const CacheLayout& layout = bench.model.cache_layout();
  EXPECT_EQ(made.pinned->prefix.bytes, 10 * layout.kv_block_bytes + layout.state_slot_bytes);
  EXPECT_EQ(bench.model.rows, 640);
  EXPECT_EQ(bench.model.logit_rows, 0);
  EXPECT_EQ(bench.loop->status().pinned_prefixes, 1);
  EXPECT_EQ(bench.loop->status().pinned_bytes, made.pinned->prefix.bytes);

  const GenerationFinished again = finish(bench, pin_request(640, 1, "other"));
  ASSERT_TRUE(again.pinned);
  EXPECT_FALSE(again.pinned->is_new);
  EXPECT_EQ(again.pinned->prefix.id, "pin");
  EXPECT_EQ(again.pinned->prefix.name, "name of other");
  EXPECT_EQ(bench.model.rows, 640);
  EXPECT_EQ(bench.loop->status().pinned_prefixes, 1);
}

TEST(Pin, OutlivesPressureAndAnswersLikeACompleteRun) {
  const std::size_t block = kKvBlockTokens * sizeof(std::uint64_t);
  const EngineConfig config = pinning_config(40 * block);
  Bench bench(config);
  ASSERT_TRUE(finish(bench, pin_request(640)).pinned);
  press(bench);
  EXPECT_GT(bench.loop->status().evicted_blocks, 100);
  const Request request = make_request(700, 20);
  const auto stream = bench.submit(request);
  bench.run();
  const Collected collected = collect(*stream);
  EXPECT_EQ(collected.answer, fake_answer(request, config));
  EXPECT_EQ(collected.finished->usage.cached_tokens, 640);

  EXPECT_TRUE(bench.loop->unpin("pin"));
  EXPECT_FALSE(bench.loop->unpin("pin"));
  EXPECT_EQ(bench.loop->status().pinned_prefixes, 0);
  press(bench);
  EXPECT_EQ(finish(bench, request).usage.cached_tokens, 0);
}

TEST(Pin, HitsAreCounted) {
  Bench bench(pinning_config());
  finish(bench, pin_request(128, 1, "outer"));
  finish(bench, pin_request(640, 1, "inner"));  // no hit of the outer one
  EXPECT_FALSE(bench.loop->list_pins()[0].last_hit_at);
  bench.clock.advance(5);
  finish(bench, make_request(200, 1));
  bench.clock.advance(5);
  finish(bench, make_request(700, 1));
  finish(bench, make_request(640, 1));  // its last token is computed: it cannot go on from 640
  const auto pins = bench.loop->list_pins();
  ASSERT_EQ(pins.size(), 2U);
  EXPECT_EQ(pins[0].hits, 3);
  EXPECT_EQ(pins[1].hits, 1);
  EXPECT_EQ(pins[1].last_hit_at, bench.clock.now());
}

TEST(Pin, EndsWithItsTime) {
  Bench bench(pinning_config());
  Request request = pin_request(128);
  request.pin->seconds = 10;
  finish(bench, request);
  bench.clock.advance(6);
  ASSERT_TRUE(finish(bench, request).pinned);  // ten more from now on
  bench.clock.advance(9);
  EXPECT_EQ(bench.loop->list_pins().size(), 1U);
  EXPECT_EQ(bench.loop->next_pin_end(), bench.clock.now() + std::chrono::seconds(1));
  bench.clock.advance(1);
  bench.step();
  EXPECT_EQ(bench.loop->status().pinned_prefixes, 0);
  EXPECT_FALSE(bench.loop->next_pin_end());
  EXPECT_EQ(finish(bench, make_request(200, 1)).usage.cached_tokens, 128);  // still stored
}

TEST(Pin, OverTheBudgetNothingIsComputed) {
  const std::size_t block = kKvBlockTokens * sizeof(std::uint64_t);
  Bench bench(pinning_config(20 * block));
  ASSERT_TRUE(finish(bench, pin_request(512)).pinned);
  const std::int64_t rows = bench.model.rows;
  const GenerationFinished refused = finish(bench, pin_request(256, 2));
  EXPECT_EQ(refused.reason, FinishReason::error);
  ASSERT_TRUE(refused.error);
  EXPECT_EQ(refused.error->code, ErrorCode::resource_exhausted);
  EXPECT_EQ(refused.error->where, "pin");
  EXPECT_NE(refused.error->message.find("256 tokens takes 2064 bytes more; 4112 of the 5120"),
            std::string::npos)
      << refused.error->message;
  EXPECT_EQ(bench.model.rows, rows);
  EXPECT_FALSE(finish(bench, pin_request(1024, 2)).pinned);
  EXPECT_TRUE(finish(bench, pin_request(64, 2)).pinned);

  Bench none(pinning_config(0));
  EXPECT_EQ(finish(none, pin_request(64)).reason, FinishReason::error);
}

TEST(Pin, TwoAtOnceForTheSamePrefixAreOne) {
  Bench bench(pinning_config());
  const auto one = bench.submit(pin_request(640, 1, "one"));
  const auto two = bench.submit(pin_request(640, 1, "two"));
  bench.run();
  EXPECT_TRUE(collect(*one).finished->pinned->is_new);
  const auto second = collect(*two).finished->pinned;
  ASSERT_TRUE(second);
  EXPECT_FALSE(second->is_new);
  EXPECT_EQ(second->prefix.id, "one");
  EXPECT_EQ(bench.model.rows, 640 + 64);  // the second one followed to the last block
}

TEST(Pin, IsGoneWhenCancelledBeforeItWasMade) {
  Bench bench(pinning_config());
  const auto gone = bench.submit(pin_request(640));
  for (int i = 0; i < 5; ++i) {
    bench.step();
  }
  gone->cancel();
  bench.run();
  EXPECT_EQ(collect(*gone).answer.reason, FinishReason::cancelled);
  EXPECT_TRUE(bench.loop->list_pins().empty());
}

TEST(Pin, AFlushTakesItUnlessToldOtherwise) {
  Bench bench(pinning_config());
  Request tenant = pin_request(128, 1, "tenant");
  tenant.cache_salt = "tenant";
  const auto ids = [&bench] {
    std::string all;
    for (const PinnedPrefix& pin : bench.loop->list_pins()) {
      all += pin.id + " ";
    }
    return all;
  };
  finish(bench, tenant);
  finish(bench, pin_request(128, 1, "public"));
  finish(bench, make_request(700, 1));
  bench.loop->flush_cache({.keep_pins = true});
  EXPECT_EQ(ids(), "tenant public ");
  EXPECT_EQ(bench.loop->status().kept_tokens, 256);
  EXPECT_EQ(finish(bench, make_request(700, 1)).usage.cached_tokens, 128);
  bench.loop->flush_cache({.salts = std::vector<std::string>{"tenant"}});
  EXPECT_EQ(ids(), "public ");
  finish(bench, tenant);
  bench.loop->flush_cache({});
  EXPECT_EQ(ids(), "");
  EXPECT_EQ(bench.loop->status().kept_bytes, 0U);
}

TEST(Pin, BadOnesAreRefusedAtOnce) {
  const SequenceLimits limits{
      .context_max = 512, .vocab_size = kFakeVocabSize, .sampled_vocab_size = kFakeVocabSize};
  const auto refused = [&limits](Request request) {
    const auto made = make_sequence(std::move(request), {}, limits, {});
    return made ? "" : made.error().where;
  };
  EXPECT_EQ(refused(pin_request(64)), "");
  EXPECT_EQ(refused(pin_request(65)), "pin");
  Request request = pin_request(64);
  request.stop.tokens_max = 1;
  EXPECT_EQ(refused(request), "pin");
  for (const double seconds : {0.0, -1.0, 2e9, std::nan("")}) {
    request = pin_request(64);
    request.pin->seconds = seconds;
    EXPECT_EQ(refused(request), "pin.seconds") << seconds;
  }
}

// On the engine's own thread: a pin ends by itself, though nothing runs and nobody asks.
TEST(Pin, EndsWhileTheEngineSleeps) {
  FakeModel model;
  const auto engine = Engine::start(model, pinning_config()).value();
  Request request = pin_request(128);
  request.pin->seconds = 0.3;
  const auto stream = engine->submit(request, {}).value();
  while (!std::holds_alternative<GenerationFinished>(stream->next())) {
  }
  std::promise<std::vector<PinnedPrefix>> listed;
  ASSERT_TRUE(
      engine->list_pins([&](const std::vector<PinnedPrefix>& pins) { listed.set_value(pins); }));
  EXPECT_LE(listed.get_future().get().size(), 1U);
  for (int i = 0; i < 3000 && engine->status().pinned_prefixes > 0; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  EXPECT_EQ(engine->status().pinned_prefixes, 0);
  std::promise<bool> unpinned;
  ASSERT_TRUE(engine->unpin("pin", [&](const bool& found) { unpinned.set_value(found); }));
  EXPECT_FALSE(unpinned.get_future().get());
}

}  // namespace
}  // namespace sluice
