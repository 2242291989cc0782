// The engine on its thread: submission, validation, cancellation, readers of every kind, shutdown.
#include "engine/engine.h"

#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <latch>
#include <random>
#include <semaphore>
#include <thread>

#include "engine/fake_answer.h"
#include "engine/fake_model.h"
#include "platform/float_mode.h"

namespace sluice {
namespace {

// kNanToken can be in a prompt but is never chosen.
EngineConfig small_config() {
  return {.context_max = 512,
          .sequences_max = 4,
          .queue_max = 8,
          .prefill_step_max = 64,
          .sampled_vocab_size = kNanToken};
}

std::unique_ptr<Engine> start(FakeModel& model, const EngineConfig& config = small_config()) {
  auto engine = Engine::start(model, config);
  SLUICE_CHECK(engine.has_value());
  return std::move(*engine);
}

std::shared_ptr<GenerationStream> submit(Engine& engine, Request request,
                                         std::function<void()> on_ready = {}) {
  auto stream = engine.submit(std::move(request), std::move(on_ready));
  SLUICE_CHECK(stream.has_value());
  return *stream;
}

struct Collected {
  FakeAnswer answer;
  GenerationFinished finished;
};

Collected read_all(GenerationStream& stream) {
  Collected collected;
  while (true) {
    GenerationEvent event = stream.next();
    if (auto* finished = std::get_if<GenerationFinished>(&event)) {
      collected.answer.reason = finished->reason;
      collected.finished = std::move(*finished);
      EXPECT_EQ(stream.try_next(), std::nullopt);
      return collected;
    }
    if (const auto* token = std::get_if<TokenEvent>(&event)) {
      collected.answer.token_ids.push_back(token->token_id);
    }
  }
}

// Lets forward() pass only as often as the test says.
class Gate {
 public:
  explicit Gate(FakeModel& model) {
    model.on_forward = [this](const ForwardBatch&) {
      entered_.release();
      allowed_.acquire();
    };
  }
  void wait_until_inside() { entered_.acquire(); }
  void open() { allowed_.release(1 << 20); }
  void let_one_pass() { allowed_.release(); }

 private:
  std::counting_semaphore<> entered_{0};
  std::counting_semaphore<> allowed_{0};
};

TEST(Engine, AnswersByDefinition) {
  FakeModel model;
  const auto engine = start(model);
  const Request request = make_request(100, 30);
  const auto stream = submit(*engine, request);
  EXPECT_EQ(read_all(*stream).answer, fake_answer(request, small_config()));
  EXPECT_EQ(engine->config().context_max, 512);
}

TEST(Engine, TheEngineThreadFlushesDenormals) {
  FakeModel model;
  std::atomic<bool> flushes{false};
  model.on_forward = [&flushes](const ForwardBatch&) { flushes = flushes_denormals(); };
  const auto engine = start(model);
  read_all(*submit(*engine, make_request(1, 1)));
  EXPECT_TRUE(flushes);
}

TEST(Engine, BadRequestsAreRefusedWithFieldAndNumbers) {
  FakeModel model;
  EngineConfig config = small_config();
  config.sampled_vocab_size = 50;
  const auto engine = start(model, config);
  const auto refusal = [&](const std::function<void(Request&)>& change) {
    Request request = make_request(5, 5);
    change(request);
    auto stream = engine->submit(std::move(request), {});
    return stream ? Error{ErrorCode::internal, "accepted", ""} : stream.error();
  };
  EXPECT_EQ(refusal([](Request& r) { r.token_ids.clear(); }).code, ErrorCode::invalid_argument);
  EXPECT_EQ(refusal([](Request& r) { r.token_ids[2] = -1; }).where, "token_ids[2]");
  EXPECT_EQ(refusal([](Request& r) { r.token_ids[3] = kFakeVocabSize; }).where, "token_ids[3]");
  EXPECT_EQ(refusal([](Request& r) { r.sampling.top_p = 2.0F; }).where, "top_p");
  EXPECT_EQ(refusal([](Request& r) { r.sampling.logit_bias = {{50, 1.0F}}; }).where, "logit_bias");
  EXPECT_EQ(refusal([](Request& r) { r.stop.tokens_max = -1; }).where, "tokens_max");
  EXPECT_EQ(refusal([](Request& r) { r.stop.stop_token_ids = {1, 999}; }).where,
            "stop_token_ids[1]");
  EXPECT_EQ(refusal([](Request& r) { r.stop.stop_token_ids.assign(2000, 1); }).where,
            "stop_token_ids");
  struct Unstartable final : ConstraintFactory {
    Result<std::unique_ptr<TokenConstraint>> start() const override {
      return fail(ErrorCode::resource_exhausted, "cannot start");
    }
  };
  EXPECT_EQ(refusal([](Request& r) { r.constraint = std::make_shared<Unstartable>(); }).message,
            "cannot start");
  const Error too_long = refusal([](Request& r) { r.token_ids.assign(512, 1); });
  EXPECT_EQ(too_long.code, ErrorCode::resource_exhausted);
  EXPECT_NE(too_long.message.find("512"), std::string::npos);
  EXPECT_EQ(refusal([](Request& r) { r.token_ids.assign(511, 59); }).message, "accepted");
}

TEST(Engine, BadConfigsAreRefused) {
  FakeModel model;
  const auto field = [&](const std::function<void(EngineConfig&)>& change) {
    EngineConfig config = small_config();
    change(config);
    auto engine = Engine::start(model, config);
    return engine ? std::string("accepted") : engine.error().where;
  };
  EXPECT_EQ(field([](EngineConfig&) {}), "accepted");
  EXPECT_EQ(field([](EngineConfig& c) { c.context_max = 1; }), "context_max");
  EXPECT_EQ(field([](EngineConfig& c) { c.context_max = std::int64_t{1} << 40; }), "context_max");
  EXPECT_EQ(field([](EngineConfig& c) { c.sequences_max = 0; }), "sequences_max");
  EXPECT_EQ(field([](EngineConfig& c) { c.queue_max = -1; }), "queue_max");
  EXPECT_EQ(field([](EngineConfig& c) { c.prefill_step_max = 0; }), "prefill_step_max");
  EXPECT_EQ(field([](EngineConfig& c) { c.sampled_vocab_size = 62; }), "sampled_vocab_size");
  EXPECT_EQ(field([](EngineConfig& c) { c.kv_tokens_max = 511; }), "kv_tokens_max");
  FakeModel no_rows({.step_tokens_max = 0});
  EXPECT_FALSE(Engine::start(no_rows, small_config()));
}

TEST(Engine, MemoryPlanAddsUpAndRefusesOverflow) {
  CacheLayout layout;
  layout.kv_block_bytes = 1000;
  layout.state_slot_bytes = 77;
  EngineConfig config{.context_max = 100, .sequences_max = 3};
  const auto plan = plan_memory(config, layout, {}, 10);
  ASSERT_TRUE(plan);
  EXPECT_EQ(plan->kv_block_count, 6);  // 3 * ceil(100 / 64)
  EXPECT_EQ(plan->kv_bytes, 6000U);
  EXPECT_EQ(plan->state_bytes, 231U);
  EXPECT_EQ(plan->logits_bytes, 3U * 10 * 4);
  EXPECT_EQ(plan->picture_bytes, 0U);
  layout.picture_row_bytes = 8;
  config.picture_bytes = 300;
  EXPECT_EQ(plan_memory(config, layout, {}, 10)->picture_bytes, 0U);  // no encoder is loaded
  EXPECT_EQ(plan_memory(config, layout, {.vision_patches_max = 4}, 10)->picture_bytes, 800U);
  config.picture_bytes = 900;
  EXPECT_EQ(plan_memory(config, layout, {.vision_patches_max = 4}, 10)->picture_bytes, 900U);
  config.kv_tokens_max = 129;
  EXPECT_EQ(plan_memory(config, layout, {}, 10)->kv_block_count, 3);
  layout.kv_block_bytes = std::size_t{1} << 63;
  EXPECT_EQ(plan_memory(config, layout, {}, 10).error().code, ErrorCode::resource_exhausted);
  layout.kv_block_bytes = std::size_t{1} << 58;  // fits the arithmetic, not the machine
  EXPECT_TRUE(plan_memory(config, layout, {}, 10));
}

TEST(Engine, AFullQueueIsAnErrorAndAnEndedRequestMakesRoom) {
  FakeModel model;
  Gate gate(model);
  EngineConfig config = small_config();
  config.sequences_max = 2;
  config.queue_max = 3;
  const auto engine = start(model, config);
  std::vector<std::shared_ptr<GenerationStream>> streams;
  streams.reserve(10);
  for (int i = 0; i < 5; ++i) {
    streams.push_back(submit(*engine, make_request(10, 2, i)));
  }
  const auto refused = engine->submit(make_request(10, 2), {});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::resource_exhausted);
  EXPECT_NE(refused.error().message.find("limit is 5"), std::string::npos);
  EXPECT_EQ(engine->status().running + engine->status().waiting, 5);
  gate.open();
  for (int i = 0; i < 5; ++i) {
    const auto index = static_cast<std::size_t>(i);
    EXPECT_EQ(read_all(*streams[index]).answer, fake_answer(make_request(10, 2, i), config));
    streams.push_back(submit(*engine, make_request(10, 2, i)));  // at once: the place is free
  }
  for (std::size_t i = 5; i < streams.size(); ++i) {
    read_all(*streams[i]);
  }
  const EngineStatus status = engine->status();
  EXPECT_EQ(status.running + status.waiting, 0);
  EXPECT_EQ(status.kv_blocks_used, 0);
  EXPECT_EQ(status.cache_bytes, 0U);
  EXPECT_EQ(status.cache_bytes_max,
            16 * model.cache_layout().kv_block_bytes + 2 * model.cache_layout().state_slot_bytes);
  EXPECT_GT(status.steps, 0);
}

TEST(Engine, CancelTakesEffectWithinOneStep) {
  FakeModel model;
  Gate gate(model);
  const auto engine = start(model);
  const auto stream = submit(*engine, make_request(10, 400));
  gate.wait_until_inside();  // the first step runs
  stream->cancel();
  gate.let_one_pass();
  const Collected collected = read_all(*stream);
  EXPECT_EQ(collected.answer.reason, FinishReason::cancelled);
  EXPECT_EQ(collected.answer.token_ids.size(), 1U);  // of the step that was under way
  EXPECT_EQ(engine->status().steps, 1);
  gate.open();
}

TEST(Engine, DestructionEndsEveryStream) {
  FakeModel model;
  auto engine = start(model);
  std::vector<std::shared_ptr<GenerationStream>> streams;
  streams.reserve(10);
  for (int i = 0; i < 10; ++i) {
    streams.push_back(submit(*engine, make_request(100, 400, i)));
  }
  engine.reset();
  for (const auto& stream : streams) {
    const FinishReason reason = read_all(*stream).answer.reason;
    EXPECT_TRUE(reason == FinishReason::cancelled || reason == FinishReason::length);
    stream->cancel();  // harmless without an engine
  }
}

TEST(Engine, AWaitingReaderIsWokenByDestruction) {
  FakeModel model;
  Gate gate(model);
  auto engine = start(model);
  const auto stream = submit(*engine, make_request(100, 400));
  auto reader = std::async(std::launch::async, [&] { return read_all(*stream).answer.reason; });
  gate.wait_until_inside();
  gate.open();
  engine.reset();
  EXPECT_NE(reader.get(), FinishReason::stop);
}

TEST(Engine, OnReadyWakesForEveryEventAndForTheEnd) {
  FakeModel model;
  const auto engine = start(model);
  std::binary_semaphore wake(0);
  std::atomic<int> calls{0};
  const Request request = make_request(100, 30);
  const auto stream = submit(*engine, request, [&] {
    ++calls;
    wake.release();
  });
  FakeAnswer answer;
  for (bool ended = false; !ended;) {
    ASSERT_TRUE(wake.try_acquire_for(std::chrono::seconds(20)));
    while (auto event = stream->try_next()) {
      if (const auto* token = std::get_if<TokenEvent>(&*event)) {
        answer.token_ids.push_back(token->token_id);
      } else if (const auto* finished = std::get_if<GenerationFinished>(&*event)) {
        answer.reason = finished->reason;
        ended = true;
      }
    }
  }
  EXPECT_EQ(answer, fake_answer(request, small_config()));
  EXPECT_LE(calls, 31);  // the admission may come alone
}

TEST(Engine, OnReadyStillComesForTheEndAfterCancel) {
  FakeModel model;
  Gate gate(model);
  const auto engine = start(model);
  std::counting_semaphore<> wake(0);
  const auto stream = submit(*engine, make_request(10, 500), [&] { wake.release(); });
  gate.wait_until_inside();
  stream->cancel();  // the token of this step still comes, then the end
  gate.open();
  while (true) {
    ASSERT_TRUE(wake.try_acquire_for(std::chrono::seconds(20)));
    while (const auto event = stream->try_next()) {
      if (const auto* finished = std::get_if<GenerationFinished>(&*event)) {
        EXPECT_EQ(finished->reason, FinishReason::cancelled);
        return;
      }
    }
  }
}

TEST(Engine, OnReadyNeverRunsAfterTheStreamIsGone) {
  FakeModel model;
  const auto engine = start(model);
  for (int i = 0; i < 300; ++i) {
    auto alive = std::make_shared<std::atomic<bool>>(true);
    auto stream = submit(*engine, make_request(5, 400), [alive] { EXPECT_TRUE(*alive); });
    if (i % 3 != 0) {
      (void)stream->next();
    }
    stream.reset();
    *alive = false;
    while (alive.use_count() > 1) {  // what it captured goes too, perhaps a moment later
      std::this_thread::yield();
    }
  }
}

TEST(Engine, TheStreamMayBeDroppedInsideOnReady) {
  FakeModel model;
  Gate gate(model);
  const auto engine = start(model);
  std::shared_ptr<GenerationStream> stream;
  std::latch dropped(1);
  stream = submit(*engine, make_request(5, 400), [&] {
    stream.reset();
    dropped.count_down();
  });
  gate.open();
  dropped.wait();
  while (engine->status().running + engine->status().waiting > 0) {
    std::this_thread::yield();
  }
}

TEST(Engine, ASlowReaderDoesNotHoldUpOthers) {
  FakeModel model;
  const auto engine = start(model);
  const auto slow = submit(*engine, make_request(5, 500, 1));  // never read until the end
  for (int i = 0; i < 20; ++i) {
    read_all(*submit(*engine, make_request(20, 20, i)));
  }
  while (engine->status().running > 0) {
    std::this_thread::yield();
  }
  EXPECT_EQ(read_all(*slow).answer.token_ids.size(), 500U);
}

// Clients on several threads: some read, some cancel, some vanish. Whatever is answered is a
// prefix of the answer by definition, and all of it when nobody cancelled.
TEST(Engine, ThousandsOfRandomRequests) {
  FakeModel model({.step_tokens_max = 48, .step_logit_rows_max = 6});
  EngineConfig config = small_config();
  config.sequences_max = 8;
  config.queue_max = 16;
  config.kv_tokens_max = 1200;
  const auto engine = start(model, config);
  const auto client = [&](std::uint64_t seed) {
    std::mt19937_64 random(seed);
    for (int i = 0; i < 700; ++i) {
      Request request = make_request(1 + static_cast<std::int64_t>(random() % 140),
                                     static_cast<std::int64_t>(random() % 30),
                                     static_cast<TokenId>(random() % 60));
      request.stop.stop_token_ids = {static_cast<TokenId>(random() % 60)};
      request.sampling.temperature = random() % 2 == 0 ? 0.0F : 1.0F;
      request.sampling.seed = random();
      auto stream = engine->submit(request, {});
      if (!stream) {
        ASSERT_EQ(stream.error().code, ErrorCode::resource_exhausted);
        std::this_thread::yield();
        continue;
      }
      switch (random() % 8) {
        case 0:
          stream->reset();
          break;
        case 1: {
          (*stream)->cancel();
          const FakeAnswer got = read_all(**stream).answer;
          const FakeAnswer want = fake_answer(request, config);
          ASSERT_LE(got.token_ids.size(), want.token_ids.size());
          ASSERT_TRUE(
              std::equal(got.token_ids.begin(), got.token_ids.end(), want.token_ids.begin()));
          break;
        }
        default:
          ASSERT_EQ(read_all(**stream).answer, fake_answer(request, config)) << seed << " " << i;
      }
    }
  };
  std::vector<std::thread> threads;
  for (std::uint64_t seed = 1; seed <= 6; ++seed) {
    threads.emplace_back(client, seed);
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  while (engine->status().running + engine->status().waiting > 0) {
    std::this_thread::yield();
  }
  EXPECT_EQ(engine->status().kv_blocks_used, 0);
}

TEST(Engine, FlushingTheCacheIsAnsweredWhenTheStatusShowsIt) {
  EngineConfig config = small_config();
  config.reuse_bytes = 1 << 20;
  FakeModel model;
  auto engine = Engine::start(model, config).value();
  read_all(*engine->submit(make_request(300, 2), {}).value());
  ASSERT_EQ(engine->status().kept_tokens, 256);
  std::promise<std::pair<CacheFlushed, EngineStatus>> flushed;
  const auto on_done = [&](const CacheFlushed& freed) {
    flushed.set_value({freed, engine->status()});
  };
  ASSERT_TRUE(engine->flush_cache({}, on_done));
  const auto [freed, status] = flushed.get_future().get();
  EXPECT_EQ(freed.tokens, 256);
  EXPECT_EQ(status.kept_tokens, 0);
}

TEST(Engine, CommandsAreAnsweredWhenTheEngineEnds) {
  FakeModel model;
  std::atomic<int> answered = 0;
  int taken = 0;
  {
    auto engine = Engine::start(model, small_config()).value();
    for (int i = 0; i < 1000; ++i) {
      taken += engine->flush_cache({}, [&](const CacheFlushed&) { ++answered; }) ? 1 : 0;
    }
  }
  EXPECT_GT(taken, 0);
  EXPECT_EQ(answered, taken);
}

}  // namespace
}  // namespace sluice
