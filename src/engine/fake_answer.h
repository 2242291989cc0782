// For tests: requests to FakeModel, and what its answer to one must be, computed one token after
// another without any engine, batch or cache.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "engine/engine.h"
#include "engine/fake_model.h"
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

// The token events up to the end, and the end.
struct FakeAnswer {
  std::vector<TokenId> token_ids;
  FinishReason reason = FinishReason::length;

  bool operator==(const FakeAnswer&) const = default;
};

inline FakeAnswer fake_answer(const Request& request, const EngineConfig& config) {
  FakeAnswer answer;
  std::vector<TokenId> history = request.token_ids;
  const std::size_t prompt = history.size();
  const std::int64_t tokens_max =
      std::min(request.stop.tokens_max, config.context_max - std::ssize(history));
  Sampler sampler(kFakeVocabSize);
  while (std::ssize(answer.token_ids) < tokens_max) {
    std::vector<float> logits = fake_logits(history);
    if (config.sampled_vocab_size != 0) {
      logits.resize(static_cast<std::size_t>(config.sampled_vocab_size));
    }
    const auto event = sampler.sample({.logits = logits,
                                       .prompt = std::span(history).first(prompt),
                                       .generated = std::span(history).subspan(prompt),
                                       .allowed = {},
                                       .position = std::ssize(history)},
                                      request.sampling);
    if (!event) {
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
  }
  return answer;
}

}  // namespace sluice
