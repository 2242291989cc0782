// Requests with pictures: the answer by definition whatever is shared, cut, cancelled or preempted.
#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <random>

#include "engine/test_loop_bench.h"

namespace sluice {
namespace {

EngineConfig picture_config() {
  EngineConfig config = small_config();
  config.reuse_bytes = std::size_t{1} << 20;
  config.picture_bytes = std::size_t{1} << 20;
  return config;
}

// A picture of `tokens` placeholders, told from others by `shade`.
std::shared_ptr<const VisionInput> picture(std::int64_t tokens, std::uint8_t shade) {
  auto input = std::make_shared<VisionInput>();
  input->grid_rows = 2;
  input->grid_columns = 2 * tokens;
  input->pixels.assign(static_cast<std::size_t>(tokens), shade);
  std::memcpy(input->digest.data(), &tokens, sizeof(tokens));
  input->digest.back() = shade;
  return input;
}

void add_picture(Request& request, std::int64_t position, std::int64_t tokens, std::uint8_t shade) {
  request.vision.push_back({.position = position, .input = picture(tokens, shade)});
}

// Prompts that begin alike up to and with a picture of 200 rows from position 20 on.
Request about_picture(std::int64_t prompt_tokens, TokenId tail, std::uint8_t shade) {
  Request request = make_request(prompt_tokens, 5, tail);
  std::copy_n(make_request(240, 0).token_ids.begin(), 240, request.token_ids.begin());
  add_picture(request, 20, 200, shade);
  return request;
}

TEST(Picture, AnotherQuestionAboutItIsNotEncodedAndSharesThePrefix) {
  Bench bench(picture_config());
  for (TokenId tail = 1; tail < 4; ++tail) {
    const Request request = about_picture(300, tail, 7);
    const auto stream = bench.submit(request);
    bench.run();
    const Collected collected = collect(*stream);
    EXPECT_EQ(collected.answer, fake_answer(request, picture_config()));
    EXPECT_EQ(bench.model.encoder.rows, 200);
    // A state after the last whole block of it is kept.
    EXPECT_EQ(collected.finished->usage.cached_tokens, tail == 1 ? 0 : 192);
  }
  const EngineStatus status = bench.loop->status();
  EXPECT_EQ(status.pictures_encoded, 1);
  EXPECT_EQ(status.pictures_reused, 2);  // for the rows behind the last whole block
}

TEST(Picture, OtherPixelsOfTheSameSizeShareNothingFromThePictureOn) {
  Bench bench(picture_config());
  for (std::uint8_t shade = 1; shade < 5; ++shade) {
    const Request request = about_picture(300, 1, shade);
    const auto stream = bench.submit(request);
    bench.run();
    const Collected collected = collect(*stream);
    EXPECT_EQ(collected.answer, fake_answer(request, picture_config()));
    EXPECT_EQ(collected.finished->usage.cached_tokens, 0);
  }
  EXPECT_EQ(bench.loop->status().pictures_encoded, 4);
}

TEST(Picture, RunningStreamsGetATokenInEveryStepWhileItIsEncoded) {
  Bench bench(picture_config());
  const auto stream = bench.submit(make_request(10, 250));
  bench.step();
  const auto looking = bench.submit(about_picture(300, 1, 7));
  for (int step = 0; step < 200; ++step) {  // a row of the picture in each
    ASSERT_EQ(bench.model.encoder.rows, step);
    collect(*stream);
    bench.step();
    ASSERT_EQ(collect(*stream).tokens.size(), 1U) << step;
  }
  EXPECT_FALSE(collect(*looking).finished);
  bench.run();
  EXPECT_EQ(collect(*looking).answer, fake_answer(about_picture(300, 1, 7), picture_config()));
}

TEST(Picture, ManyWhoWaitForOnePictureAreServedByOneEncoding) {
  EngineConfig config = picture_config();
  config.picture_bytes = 0;
  config.reuse_bytes = 0;
  Bench bench(config);
  std::vector<std::shared_ptr<GenerationStream>> streams;
  for (TokenId tail = 1; tail < 5; ++tail) {
    streams.push_back(bench.submit(about_picture(300, tail, 7)));
  }
  bench.run();
  for (TokenId tail = 1; tail < 5; ++tail) {
    EXPECT_EQ(collect(*streams[static_cast<std::size_t>(tail - 1)]).answer,
              fake_answer(about_picture(300, tail, 7), config));
  }
  EXPECT_EQ(bench.model.encoder.rows, 200);
}

TEST(Picture, AnEncodingNobodyWaitsForIsGivenUp) {
  Bench bench(picture_config());
  const auto gone = bench.submit(about_picture(300, 1, 7));
  for (int step = 0; step < 50; ++step) {
    bench.step();
  }
  gone->cancel();
  const auto next = bench.submit(about_picture(300, 1, 8));
  bench.run();
  EXPECT_EQ(collect(*gone).answer.reason, FinishReason::cancelled);
  EXPECT_EQ(collect(*next).answer, fake_answer(about_picture(300, 1, 8), picture_config()));
  EXPECT_EQ(bench.model.encoder.rows, 50 + 200);
}

TEST(Picture, WithoutMemoryForItTheRequestEndsAlone) {
  Bench bench(picture_config());
  bench.model.encoder.refuses = [](const VisionInput& input) { return input.pixels[0] == 7; };
  const auto refused = bench.submit(about_picture(300, 1, 7));
  const auto other = bench.submit(about_picture(300, 1, 8));
  bench.run();
  const Collected collected = collect(*refused);
  EXPECT_EQ(collected.answer.reason, FinishReason::error);
  EXPECT_EQ(collected.finished->error->code, ErrorCode::resource_exhausted);
  EXPECT_EQ(collect(*other).answer, fake_answer(about_picture(300, 1, 8), picture_config()));
}

// Each of the prompts needs nearly all the rows that there may be at once.
TEST(Picture, RowsStayWithinTheirLimitAndWhoeverIsFirstGetsThem) {
  EngineConfig config = picture_config();
  config.picture_bytes = 1;
  config.context_max = 320;
  config.prefill_step_max = 16;
  Bench bench(config);
  std::vector<Request> requests;
  std::vector<std::shared_ptr<GenerationStream>> streams;
  for (std::uint8_t i = 0; i < 4; ++i) {
    Request request = make_request(310, 5, i);
    for (std::uint8_t k = 0; k < 3; ++k) {  // the middle one is everybody's
      add_picture(request, 5 + 101 * k, 100, k == 1 ? 1 : static_cast<std::uint8_t>(10 * i + k));
    }
    request.priority = i == 3 ? -1 : 0;
    requests.push_back(request);
    streams.push_back(bench.submit(request));
    for (int step = 0; step < 150; ++step) {
      bench.step();
      EXPECT_LE(bench.loop->status().picture_bytes_in_all, 320U * 8);
    }
  }
  bench.run();  // checks the limit after every step
  for (std::size_t i = 0; i < requests.size(); ++i) {
    EXPECT_EQ(collect(*streams[i]).answer, fake_answer(requests[i], config)) << i;
  }
  EXPECT_EQ(bench.loop->status().picture_bytes_in_all, 0U);
}

TEST(Picture, IsPinnedAlsoWhereThePinEndsInsideIt) {
  Bench bench(picture_config());
  const auto pin = [&bench](std::int64_t tokens, std::uint8_t shade) {
    Request request = about_picture(300, 1, shade);
    request.token_ids.resize(static_cast<std::size_t>(tokens));
    request.stop.tokens_max = 0;
    request.pin = PinLabel{.id = "pin of " + std::to_string(shade), .name = ""};
    const auto stream = bench.submit(request);
    bench.run();
    return collect(*stream).finished.value();
  };
  ASSERT_TRUE(pin(128, 7).pinned);
  ASSERT_TRUE(pin(256, 8).pinned);
  const GenerationFinished again = pin(128, 7);
  ASSERT_TRUE(again.pinned);
  EXPECT_FALSE(again.pinned->is_new);
  const std::array cached{std::pair{7, 128}, std::pair{8, 192}, std::pair{9, 0}};
  for (const auto& [shade, tokens] : cached) {
    const Request request = about_picture(300, 2, static_cast<std::uint8_t>(shade));
    const auto stream = bench.submit(request);
    bench.run();
    const Collected collected = collect(*stream);
    EXPECT_EQ(collected.answer, fake_answer(request, picture_config()));
    EXPECT_EQ(collected.finished->usage.cached_tokens, tokens) << shade;
  }
}

TEST(Picture, SpansThatDoNotFitThePromptAreErrors) {
  const SequenceLimits limits{
      .context_max = 512, .vocab_size = 61, .sampled_vocab_size = 61, .vision_patches_max = 160};
  const auto code_of = [](const Request& request, const SequenceLimits& with) {
    const auto made = make_sequence(request, {}, with, {});
    return made ? ErrorCode::internal : made.error().code;
  };
  const auto with_spans = [](std::vector<VisionSpan> spans) {
    Request request = make_request(100, 5);
    request.vision = std::move(spans);
    return request;
  };
  EXPECT_EQ(code_of(with_spans({{.position = 81, .input = picture(20, 1)}}), limits),
            ErrorCode::invalid_argument);
  EXPECT_EQ(code_of(with_spans({{.position = -1, .input = picture(20, 1)}}), limits),
            ErrorCode::invalid_argument);
  EXPECT_EQ(code_of(with_spans({{.position = 10, .input = nullptr}}), limits),
            ErrorCode::invalid_argument);
  EXPECT_EQ(code_of(with_spans({{.position = 10, .input = picture(20, 1)},
                                {.position = 29, .input = picture(20, 1)}}),
                    limits),
            ErrorCode::invalid_argument);
  const Request good = with_spans({{.position = 80, .input = picture(20, 1)}});
  EXPECT_TRUE(make_sequence(good, {}, limits, {}).has_value());
  EXPECT_EQ(code_of(with_spans({{.position = 10, .input = picture(41, 1)}}), limits),
            ErrorCode::invalid_argument);
  Request pinned = with_spans({{.position = 99, .input = picture(20, 1)}});
  EXPECT_EQ(code_of(pinned, limits), ErrorCode::invalid_argument);
  pinned.stop.tokens_max = 0;
  pinned.token_ids.resize(64);
  pinned.vision[0].position = 63;
  pinned.pin = PinLabel{.id = "pin", .name = ""};
  EXPECT_TRUE(make_sequence(pinned, {}, limits, {}).has_value());
  SequenceLimits narrow = limits;
  narrow.context_max = 80;
  EXPECT_EQ(code_of(pinned, narrow), ErrorCode::invalid_argument);
  SequenceLimits blind = limits;
  blind.vision_patches_max = 0;
  EXPECT_EQ(code_of(good, blind), ErrorCode::unsupported);
  Request scored = good;
  scored.prompt_logprobs = 0;
  EXPECT_EQ(code_of(scored, limits), ErrorCode::unsupported);
}

// Requests whose prompts are cut from a few texts with pictures at a few places.
class RandomRequests {
 public:
  explicit RandomRequests(std::uint64_t seed) : rng_(seed) {}

  int below(int n) { return static_cast<int>(rng_() % static_cast<std::uint64_t>(n)); }

  Request next() {
    Request request = make_request(2 + below(400), below(12), 1 + below(2));
    std::int64_t position = below(40);
    while (below(3) != 0) {
      const std::int64_t tokens = 1 + (below(2) == 0 ? below(5) : 60 + below(80));
      if (position + tokens > std::ssize(request.token_ids)) {
        break;
      }
      add_picture(request, position, tokens, static_cast<std::uint8_t>(below(3)));
      position += tokens + (below(2) == 0 ? 0 : below(70));
    }
    request.priority = below(3);
    request.sampling.temperature = below(2) == 0 ? 0.0F : 0.8F;
    request.sampling.repetition_penalty = below(2) == 0 ? 1.0F : 1.3F;
    request.sampling.seed = rng_();
    return request;
  }

 private:
  std::mt19937_64 rng_;
};

TEST(Picture, WhateverHappensTheAnswerIsTheOneByDefinition) {
  std::int64_t preempted = 0;
  std::int64_t reused_pictures = 0;
  std::int64_t reused_tokens = 0;
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    RandomRequests random(seed);
    EngineConfig config = picture_config();
    config.sequences_max = 1 + random.below(6);
    config.prefill_step_max = 1 + random.below(100);
    config.prefill_beside_decode_max = random.below(40);
    config.reuse_bytes = static_cast<std::size_t>(random.below(3)) * 100000;
    config.picture_bytes = static_cast<std::size_t>(random.below(3)) * 1000;
    config.kv_tokens_max = random.below(2) == 0 ? 0 : 512 + random.below(512);
    Bench bench(config);
    std::vector<Request> requests;
    std::vector<std::shared_ptr<GenerationStream>> streams;
    std::vector<bool> cancelled;
    for (int i = 0; i < 40; ++i) {
      requests.push_back(random.next());
      streams.push_back(bench.submit(requests.back()));
      for (int steps = random.below(60); steps > 0; --steps) {
        bench.step();
      }
      cancelled.push_back(random.below(8) == 0);
      if (cancelled.back()) {
        streams.back()->cancel();
      }
    }
    bench.run();
    for (std::size_t i = 0; i < requests.size(); ++i) {
      Collected collected = collect(*streams[i]);
      FakeAnswer wanted = fake_answer(requests[i], config);
      if (cancelled[i] && collected.answer.reason == FinishReason::cancelled) {
        wanted.token_ids.resize(collected.answer.token_ids.size());
        wanted.reason = FinishReason::cancelled;
      }
      ASSERT_EQ(collected.answer, wanted) << "seed " << seed << ", request " << i;
      reused_tokens += collected.finished->usage.cached_tokens;
    }
    preempted += bench.loop->status().preemptions;
    reused_pictures += bench.loop->status().pictures_reused;
  }
  EXPECT_GT(preempted, 20);
  EXPECT_GT(reused_pictures, 50);
  EXPECT_GT(reused_tokens, 10000);
}

}  // namespace
}  // namespace sluice
