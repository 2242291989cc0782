// Kept prefixes in another engine's life: the answers are the same, less is computed.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <filesystem>
#include <random>
#include <string>

#include "cache/test_files.h"
#include "engine/test_loop_bench.h"

namespace sluice {
namespace {

using ::testing::HasSubstr;

EngineConfig keeping_config(std::size_t reuse_bytes = 1 << 20) {
  EngineConfig config = small_config();
  config.context_max = 2048;
  config.reuse_bytes = reuse_bytes;
  return config;
}

GenerationFinished finish(Bench& bench, Request request) {
  const auto stream = bench.submit(std::move(request));
  bench.run();
  return collect(*stream).finished.value();
}

Request pin_request(std::int64_t tokens, const std::string& id,
                    std::optional<double> seconds = std::nullopt) {
  Request request = make_request(tokens, 0);
  request.pin = PinLabel{.id = id, .name = "name of " + id, .seconds = seconds};
  return request;
}

class CacheTransferTest : public CacheFolderTest {
 protected:
  CacheFile file(const std::string& weights = "w1") const {
    return {.path = path_, .identity = {{"weights", weights}}};
  }
};

TEST_F(CacheTransferTest, AnswersAfterwardsAreThoseOfACompleteRun) {
  const EngineConfig config = keeping_config();
  std::vector<Request> requests;
  std::mt19937 random(1);
  for (int i = 0; i < 20; ++i) {
    requests.push_back(make_request(1 + static_cast<std::int64_t>(random() % 900), 20,
                                    static_cast<TokenId>(1 + random() % 3)));
    requests.back().cache_salt = random() % 2 == 0 ? "a" : "b";
  }
  Bench first(config);
  for (const Request& request : requests) {
    finish(first, request);
  }
  const auto saved = first.loop->save_cache(file());
  ASSERT_TRUE(saved) << saved.error().message;
  EXPECT_GT(saved->tokens, 0);
  EXPECT_EQ(first.loop->status().metrics.saved_tokens, saved->tokens);

  for (const std::size_t bytes :
       {std::size_t{0}, std::size_t{3000}, std::size_t{9000}, std::size_t{1} << 20}) {
    EngineConfig smaller = config;
    smaller.reuse_bytes = bytes;
    Bench second(smaller);
    const auto loaded = second.loop->load_cache(file());
    ASSERT_TRUE(loaded) << loaded.error().message;
    second.loop->check_invariants();
    EXPECT_LE(loaded->tokens, saved->tokens);
    EXPECT_EQ(loaded->tokens > 0, bytes > 0);
    EXPECT_EQ(second.loop->status().kept_tokens, loaded->tokens);
    EXPECT_EQ(second.loop->status().metrics.loaded_tokens, loaded->tokens);
    for (const Request& request : requests) {
      const auto stream = second.submit(request);
      second.run();
      const Collected collected = collect(*stream);
      EXPECT_EQ(collected.answer, fake_answer(request, smaller));
    }
    if (bytes == std::size_t{1} << 20) {
      EXPECT_EQ(loaded->bytes, saved->bytes);
      EXPECT_GT(second.loop->status().metrics.reused_tokens,
                first.loop->status().metrics.reused_tokens);
    }
  }
}

TEST_F(CacheTransferTest, PicturesAreFoundAgain) {
  EngineConfig config = keeping_config();
  config.picture_bytes = 1 << 20;
  const auto about_picture = [](std::uint8_t shade) {
    Request request = make_request(640, 3);
    auto input = std::make_shared<VisionInput>();
    input->grid_rows = 2;
    input->grid_columns = 400;
    input->pixels = {shade};
    input->digest = {shade};
    request.vision.push_back({.position = 40, .input = std::move(input)});
    return request;
  };
  Bench first(config);
  finish(first, about_picture(1));
  finish(first, about_picture(2));
  ASSERT_TRUE(first.loop->save_cache(file()));

  Bench second(config);
  finish(second, about_picture(3));  // so that names differ
  ASSERT_TRUE(second.loop->load_cache(file()));
  for (const std::uint8_t shade : std::to_array<std::uint8_t>({2, 1, 3, 4})) {
    const std::int64_t encoded = second.model.encoder.rows;
    const auto stream = second.submit(about_picture(shade));
    second.run();
    const Collected collected = collect(*stream);
    EXPECT_EQ(collected.answer, fake_answer(about_picture(shade), config));
    EXPECT_EQ(collected.finished->usage.cached_tokens, shade == 4 ? 0 : 576);
    EXPECT_EQ(second.model.encoder.rows - encoded, shade == 4 ? 200 : 0);  // behind the last row
  }
}

TEST_F(CacheTransferTest, BetweenTheStepsOfWhatRuns) {
  const EngineConfig config = keeping_config();
  Bench bench(config);
  finish(bench, make_request(640, 1, 2));
  const Request request = make_request(700, 40);
  const auto stream = bench.submit(request);
  for (int i = 0; i < 15; ++i) {
    bench.step();
  }
  ASSERT_FALSE(bench.loop->is_idle());
  ASSERT_TRUE(bench.loop->save_cache(file()));
  bench.loop->flush_cache({});
  const auto loaded = bench.loop->load_cache(file());
  ASSERT_TRUE(loaded);
  EXPECT_EQ(loaded->tokens, 640);  // what runs was untouched, so it is known
  bench.run();
  EXPECT_EQ(collect(*stream).answer, fake_answer(request, config));
  EXPECT_EQ(finish(bench, make_request(700, 1, 2)).usage.cached_tokens, 640);
}

TEST_F(CacheTransferTest, PinsGoOn) {
  Bench first(keeping_config());
  ASSERT_TRUE(finish(first, pin_request(640, "long")).pinned);
  ASSERT_TRUE(finish(first, pin_request(128, "short", 10.0)).pinned);
  first.clock.advance(4);
  const auto saved = first.loop->save_cache(file());
  ASSERT_TRUE(saved);
  EXPECT_EQ(saved->pins, 2);

  Bench second(keeping_config());
  EXPECT_EQ(second.loop->load_cache(file())->pins, 2);
  second.loop->check_invariants();
  const auto pins = second.loop->list_pins();
  ASSERT_EQ(pins.size(), 2U);
  EXPECT_EQ(pins[0].id, "long");
  EXPECT_EQ(pins[0].name, "name of long");
  EXPECT_EQ(pins[0].tokens, 640);
  EXPECT_FALSE(pins[0].ends_at);
  EXPECT_EQ(pins[1].ends_at, second.clock.now() + std::chrono::seconds(6));
  EXPECT_EQ(second.loop->load_cache(file())->pins, 0);  // they are pinned
  EXPECT_EQ(second.loop->list_pins().size(), 2U);
  second.clock.advance(6);
  EXPECT_EQ(second.loop->list_pins().size(), 1U);
}

TEST_F(CacheTransferTest, APinThatDoesNotFitIsAPrefixLikeOthers) {
  Bench first(keeping_config());
  ASSERT_TRUE(finish(first, pin_request(640, "long")).pinned);
  ASSERT_TRUE(first.loop->save_cache(file()));
  Bench second(keeping_config(16 * kKvBlockTokens * sizeof(std::uint64_t)));
  const auto loaded = second.loop->load_cache(file());
  EXPECT_EQ(loaded->pins, 0);
  EXPECT_EQ(loaded->tokens, 640);
  EXPECT_EQ(finish(second, make_request(700, 1)).usage.cached_tokens, 640);
}

TEST_F(CacheTransferTest, WhatIsRefusedChangesNothing) {
  Bench first(keeping_config());
  finish(first, make_request(640, 1));
  ASSERT_TRUE(first.loop->save_cache(file()));
  Bench second(keeping_config());
  const auto other = second.loop->load_cache(file("w2"));
  EXPECT_EQ(other.error().code, ErrorCode::unsupported);
  EXPECT_THAT(other.error().message, HasSubstr("weights: saved with w1, here w2"));
  std::string bytes = read();
  bytes.back() = static_cast<char>(bytes.back() ^ 1);
  write(bytes);
  EXPECT_EQ(second.loop->load_cache(file()).error().code, ErrorCode::corrupt_data);
  EXPECT_EQ(second.loop->status().kept_tokens, 0);
  EXPECT_EQ(second.loop->status().metrics.loaded_tokens, 0);
  EXPECT_EQ(second.loop->load_cache({.path = directory_ / "none", .identity = {}}).error().code,
            ErrorCode::not_found);
}

}  // namespace
}  // namespace sluice
