#include "sampling/sampler.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <string>

#include "base/check.h"
#include "kernels/scalar_math.h"
#include "sampling/best_ids.h"
#include "sampling/counter_rng.h"
#include "sampling/nucleus.h"
#include "sampling/softmax_weights.h"

namespace sluice {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kScoreMax = std::numeric_limits<float>::max();
constexpr std::uint32_t kSeenInPrompt = 1U << 31;

bool is_greedy(const SamplingParams& params) {
  return params.temperature < kTemperatureMin || params.top_p <= 0.0F;
}

// The highest score, exactly: the order of comparisons does not matter. Not for NaN.
float highest(std::span<const float> scores) {
  constexpr std::size_t kLanes = 16;
  float lanes[kLanes];
  std::fill_n(lanes, kLanes, -kInfinity);
  std::size_t i = 0;
  for (; i + kLanes <= scores.size(); i += kLanes) {
    for (std::size_t lane = 0; lane < kLanes; ++lane) {
      lanes[lane] = scores[i + lane] > lanes[lane] ? scores[i + lane] : lanes[lane];
    }
  }
  for (; i < scores.size(); ++i) {
    lanes[0] = scores[i] > lanes[0] ? scores[i] : lanes[0];
  }
  return *std::max_element(lanes, lanes + kLanes);
}

Result<void> check_logits(std::span<const float> logits) {
  int bad = 0;
  for (const float logit : logits) {
    bad |= static_cast<int>(!(logit <= kScoreMax));  // NaN or +infinity
  }
  if (bad == 0) {
    return {};
  }
  for (std::size_t id = 0; id < logits.size(); ++id) {
    if (!(logits[id] <= kScoreMax)) {
      return fail(ErrorCode::internal, "the logit of token id " + std::to_string(id) + " is " +
                                           std::to_string(logits[id]) + ", want a finite number");
    }
  }
  return {};
}

// Of the ids with this score the lowest.
TokenId first_with(std::span<const float> scores, float score) {
  const auto found = std::find(scores.begin(), scores.end(), score);
  SLUICE_CHECK(found != scores.end());
  return static_cast<TokenId>(found - scores.begin());
}

}  // namespace

Sampler::Sampler(std::int64_t vocab_size) {
  SLUICE_CHECK(vocab_size >= 1);
  SLUICE_CHECK(vocab_size <= std::numeric_limits<TokenId>::max());
  const auto size = static_cast<std::size_t>(vocab_size);
  scores_.resize(size);
  weights_.resize(size);
  order_.resize(size);
  marks_.resize(size);
}

Result<TokenEvent> Sampler::sample(const SampleInput& input, const SamplingParams& params) {
  SLUICE_CHECK(!input.logits.empty());
  SLUICE_CHECK(input.logits.size() <= scores_.size());
  SLUICE_TRY(check_logits(input.logits));
  const std::span<const float> scores = adjusted_scores(input, params);
  const float best = highest(scores);
  if (best == -kInfinity) {
    return fail(ErrorCode::internal, "none of " + std::to_string(scores.size()) +
                                         " token ids may be chosen: all scores are -infinity");
  }
  TokenEvent event;
  event.token_id = is_greedy(params) ? first_with(scores, best) : draw(scores, best, input, params);
  if (params.logprobs >= 0) {
    const bool raw = scores.data() == input.logits.data();
    add_logprobs(input.logits, raw ? best : highest(input.logits), params.logprobs, event);
  }
  return event;
}

Result<TokenEvent> Sampler::score(std::span<const float> logits, TokenId token,
                                  std::int32_t count) {
  SLUICE_CHECK(!logits.empty());
  SLUICE_CHECK(logits.size() <= weights_.size());
  SLUICE_TRY(check_logits(logits));
  TokenEvent event{.token_id = token};
  add_logprobs(logits, highest(logits), count, event);
  return event;
}

// The logits themselves when nothing changes them, else scores_.
std::span<const float> Sampler::adjusted_scores(const SampleInput& input,
                                                const SamplingParams& params) {
  const bool penalised = params.repetition_penalty != 1.0F || params.presence_penalty != 0.0F ||
                         params.frequency_penalty != 0.0F;
  if (!penalised && params.logit_bias.empty() && input.allowed.empty()) {
    return input.logits;
  }
  const std::size_t size = input.logits.size();
  std::copy(input.logits.begin(), input.logits.end(), scores_.begin());
  for (const auto& [id, bias] : params.logit_bias) {
    if (static_cast<std::size_t>(id) < size) {
      scores_[static_cast<std::size_t>(id)] += bias;
    }
  }
  if (penalised) {
    apply_penalties(input, params);
  }
  if (!input.allowed.empty()) {
    SLUICE_CHECK(input.allowed.size() * 32 >= size);
    for (std::size_t id = 0; id < size; ++id) {
      if (((input.allowed[id / 32] >> (id % 32)) & 1U) == 0) {
        scores_[id] = -kInfinity;
      }
    }
  }
  return std::span(scores_).first(size);
}

// One walk marks what occurs (and applies the repetition penalty at the first sight of a token), a
// second one applies the others once per token and clears the marks.
void Sampler::apply_penalties(const SampleInput& input, const SamplingParams& params) {
  const std::size_t size = input.logits.size();
  const float repetition = params.repetition_penalty;
  const auto repeat = [&](std::size_t id) {
    float& score = scores_[id];
    score = std::min(score > 0.0F ? score / repetition : score * repetition, kScoreMax);
  };
  const bool mark_prompt = repetition != 1.0F;
  if (mark_prompt) {
    for (const TokenId token : input.prompt) {
      const auto id = static_cast<std::size_t>(token);
      if (id < size && marks_[id] == 0) {
        marks_[id] = kSeenInPrompt;
        repeat(id);
      }
    }
  }
  for (const TokenId token : input.generated) {
    const auto id = static_cast<std::size_t>(token);
    if (id < size && marks_[id]++ == 0) {
      repeat(id);
    }
  }
  for (const TokenId token : input.generated) {
    const auto id = static_cast<std::size_t>(token);
    if (id < size && marks_[id] != 0) {
      const auto count = static_cast<float>(marks_[id] & ~kSeenInPrompt);
      scores_[id] -= params.frequency_penalty * count + params.presence_penalty;
      marks_[id] = 0;
    }
  }
  if (mark_prompt) {
    for (const TokenId token : input.prompt) {
      const auto id = static_cast<std::size_t>(token);
      if (id < size) {
        marks_[id] = 0;
      }
    }
  }
}

TokenId Sampler::draw(std::span<const float> scores, float best, const SampleInput& input,
                      const SamplingParams& params) {
  const std::size_t kept = keep_top(scores, best, params);
  const bool all = kept == scores.size();
  const auto id_at = [&](std::size_t i) { return all ? static_cast<TokenId>(i) : order_[i]; };
  const auto weight_at = [&](std::size_t i) {
    const float weight = weights_[static_cast<std::size_t>(id_at(i))];
    return weight >= params.min_p ? static_cast<double>(weight) : 0.0;
  };
  double total = 0.0;
  for (std::size_t i = 0; i < kept; ++i) {
    total += weight_at(i);
  }
  const double target = uniform_at(params.seed, input.position) * total;
  double sum = 0.0;
  TokenId chosen = -1;
  for (std::size_t i = 0; i < kept; ++i) {
    const double weight = weight_at(i);
    if (weight > 0.0) {
      chosen = id_at(i);
      sum += weight;
      if (sum > target) {
        break;
      }
    }
  }
  SLUICE_CHECK(chosen >= 0);  // the best token weighs 1
  return chosen;
}

// Applies top-k and top-p: order_[0, result) are the kept ids, ascending, or result is
// scores.size(): all ids are kept and order_ means nothing. weights_ is set for every kept id.
std::size_t Sampler::keep_top(std::span<const float> scores, float best,
                              const SamplingParams& params) {
  const WeightScale scale{.best = best, .temperature = params.temperature};
  if (params.top_k > 0 && static_cast<std::size_t>(params.top_k) < scores.size()) {
    return keep_top_k(scores, scale, params);
  }
  const std::span<float> weights = std::span(weights_).first(scores.size());
  softmax_weights(scores, scale, weights);
  if (params.top_p >= 1.0F) {
    return scores.size();
  }
  const double total = std::accumulate(weights.begin(), weights.end(), 0.0);
  return nucleus(weights, static_cast<double>(params.top_p) * total, order_);
}

std::size_t Sampler::keep_top_k(std::span<const float> scores, const WeightScale& scale,
                                const SamplingParams& params) {
  const auto top_k = static_cast<std::size_t>(params.top_k);
  best_ids(scores, top_k, order_);
  double total = 0.0;
  for (std::size_t i = 0; i < top_k; ++i) {
    const auto id = static_cast<std::size_t>(order_[i]);
    weights_[id] = softmax_weight(scores[id], scale);
    total += static_cast<double>(weights_[id]);
  }
  std::size_t kept = top_k;
  if (params.top_p < 1.0F) {
    const double wanted = static_cast<double>(params.top_p) * total;
    double sum = 0.0;
    for (kept = 0; kept < top_k && sum < wanted; ++kept) {
      sum += static_cast<double>(weights_[static_cast<std::size_t>(order_[kept])]);
    }
  }
  std::sort(order_.begin(), order_.begin() + static_cast<std::ptrdiff_t>(kept));
  return kept;
}

void Sampler::add_logprobs(std::span<const float> logits, float best, std::int32_t count,
                           TokenEvent& event) {
  const std::span<float> weights = std::span(weights_).first(logits.size());
  softmax_weights(logits, {.best = best, .temperature = 1.0F}, weights);
  const double total = std::accumulate(weights.begin(), weights.end(), 0.0);
  const float log_total = kernels::log_f32(static_cast<float>(total));
  const auto logprob = [&](TokenId id) {
    const auto index = static_cast<std::size_t>(id);
    return index < logits.size() ? logits[index] - best - log_total : -kInfinity;
  };
  event.logprob = logprob(event.token_id);
  const std::size_t wanted = std::min(static_cast<std::size_t>(count), logits.size());
  if (wanted == 0) {
    return;
  }
  best_ids(logits, wanted, order_);
  event.top_logprobs.reserve(wanted);
  for (std::size_t i = 0; i < wanted; ++i) {
    event.top_logprobs.push_back({order_[i], logprob(order_[i])});
  }
}

}  // namespace sluice
