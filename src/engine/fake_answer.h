// For tests: requests to FakeModel, and what its answer to one must be, computed one token after
// another without any engine, batch or cache.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "engine/engine.h"
#include "engine/fake_model.h"
#include "request/token_constraint.h"
#include "sampling/sampler.h"

namespace sluice {

inline Request make_request(std::int64_t prompt_tokens, std::int64_t tokens_max,
                            TokenId first = 1) {
  Request request;
  request.id = "r" + std::to_string(first);
  for (std::int64_t i = 0; i < prompt_tokens; ++i) {
    request.token_ids.push_back(static_cast<TokenId>((first + i * i) % kNanToken));
  }
  request.stop.tokens_max = tokens_max;
  return request;
}

// Allows every token, a part of them or a single one, by the tokens so far; says the end after
// tokens_max of them, and fails after failing_at.
struct FakeConstraintOptions {
  std::uint64_t seed = 1;
  std::int64_t tokens_max = 1 << 30;
  std::int64_t failing_at = 1 << 30;
};

class FakeConstraint final : public TokenConstraint {
 public:
  explicit FakeConstraint(const FakeConstraintOptions& options)
      : options_(options), history_(options.seed) {}

  Result<bool> narrow(std::span<std::uint32_t> allowed) override {
    const std::uint64_t kind = history_ / 4 % 3;
    for (std::size_t id = 0; id < allowed.size() * 32; ++id) {
      const bool wanted = kind == 0 || (kind == 1 && fake_mix(history_, id) / 4 % 4 == 0) ||
                          id == history_ / 16 % 4;  // never none, even of four ids
      if (!wanted) {
        allowed[id / 32] &= ~(std::uint32_t{1} << (id % 32));
      }
    }
    return kind != 0;
  }

  Result<void> accept(TokenId token) override {
    if (++count_ > options_.failing_at) {
      return fail(ErrorCode::resource_exhausted, "the fake constraint fails");
    }
    history_ = fake_mix(history_, static_cast<std::uint64_t>(token));
    return {};
  }

  Result<bool> is_finished() override { return count_ >= options_.tokens_max; }

 private:
  FakeConstraintOptions options_;
  std::uint64_t history_;
  std::int64_t count_ = 0;
};

class FakeConstraintFactory final : public ConstraintFactory {
 public:
  explicit FakeConstraintFactory(const FakeConstraintOptions& options) : options_(options) {}
  Result<std::unique_ptr<TokenConstraint>> start() const override {
    return std::make_unique<FakeConstraint>(options_);
  }

 private:
  FakeConstraintOptions options_;
};

inline std::shared_ptr<const ConstraintFactory> fake_constraint(
    const FakeConstraintOptions& options = {}) {
  return std::make_shared<FakeConstraintFactory>(options);
}

// The token events up to the end, and the end.
struct FakeAnswer {
  std::vector<TokenId> token_ids;
  FinishReason reason = FinishReason::length;

  bool operator==(const FakeAnswer&) const = default;
};

inline FakeAnswer fake_answer(const Request& request, const EngineConfig& config) {
  FakeAnswer answer;
  std::vector<TokenId> history = request.token_ids;
  for (const VisionSpan& span : request.vision) {
    for (std::int64_t row = 0; row < span.input->token_count(); ++row) {
      history[static_cast<std::size_t>(span.position + row)] =
          fake_picture_token(FakeVisionEncoder::seed_of(*span.input), static_cast<float>(row));
    }
  }
  const MropePositions positions(request.vision);
  const std::size_t prompt = history.size();
  const std::int64_t tokens_max =
      std::min(request.stop.tokens_max, config.context_max - std::ssize(history));
  Sampler sampler(kFakeVocabSize);
  const auto constraint = request.constraint ? *request.constraint->start() : nullptr;
  while (std::ssize(answer.token_ids) < tokens_max) {
    std::vector<float> logits = fake_logits(history, positions);
    if (config.sampled_vocab_size != 0) {
      logits.resize(static_cast<std::size_t>(config.sampled_vocab_size));
    }
    std::vector<std::uint32_t> allowed(2, ~std::uint32_t{0});
    if (constraint && !*constraint->narrow(allowed)) {
      allowed.clear();
    }
    const auto event =
        sampler.sample({.logits = logits,
                        .prompt = std::span(history).first(prompt),
                        .generated = std::span(history).subspan(prompt),
                        .allowed = constraint ? allowed : std::vector<std::uint32_t>(),
                        .position = std::ssize(history)},
                       request.sampling);
    if (!event || (constraint && !constraint->accept(event->token_id))) {
      answer.reason = FinishReason::error;
      return answer;
    }
    const auto& stops = request.stop.stop_token_ids;
    if (!request.stop.ignore_eos &&
        std::find(stops.begin(), stops.end(), event->token_id) != stops.end()) {
      answer.reason = FinishReason::stop;
      return answer;
    }
    answer.token_ids.push_back(event->token_id);
    history.push_back(event->token_id);
    if (constraint && *constraint->is_finished()) {
      answer.reason = FinishReason::stop;
      return answer;
    }
  }
  return answer;
}

}  // namespace sluice
