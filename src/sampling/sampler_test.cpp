// The sampler against a naive fp64 reference that sorts everything and sums in the obvious way.
#include "sampling/sampler.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <set>

#include "sampling/best_ids.h"
#include "sampling/counter_rng.h"

namespace sluice {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

struct Scenario {
  std::vector<float> logits;
  std::vector<TokenId> prompt;
  std::vector<TokenId> generated;
  std::vector<std::uint32_t> allowed;
  SamplingParams params;
  std::int64_t position = 0;

  SampleInput input() const { return {logits, prompt, generated, allowed, position}; }
};

std::vector<double> reference_scores(const Scenario& s) {
  std::vector<double> scores(s.logits.begin(), s.logits.end());
  for (const auto& [id, bias] : s.params.logit_bias) {
    scores[static_cast<std::size_t>(id)] += static_cast<double>(bias);
  }
  for (std::size_t id = 0; id < scores.size(); ++id) {
    const auto token = static_cast<TokenId>(id);
    const auto count = std::count(s.generated.begin(), s.generated.end(), token);
    if (count > 0 || std::count(s.prompt.begin(), s.prompt.end(), token) > 0) {
      const auto penalty = static_cast<double>(s.params.repetition_penalty);
      scores[id] = scores[id] > 0 ? scores[id] / penalty : scores[id] * penalty;
    }
    if (count > 0) {
      scores[id] -= static_cast<double>(s.params.presence_penalty) +
                    static_cast<double>(s.params.frequency_penalty) * static_cast<double>(count);
    }
    if (!s.allowed.empty() && ((s.allowed[id / 32] >> (id % 32)) & 1U) == 0) {
      scores[id] = -std::numeric_limits<double>::infinity();
    }
  }
  return scores;
}

// Probability of every id, by definition.
std::vector<double> reference_probabilities(const Scenario& s) {
  const std::vector<double> scores = reference_scores(s);
  std::vector<std::size_t> ids(scores.size());
  for (std::size_t i = 0; i < ids.size(); ++i) {
    ids[i] = i;
  }
  std::sort(ids.begin(), ids.end(), [&](std::size_t a, std::size_t b) {
    return scores[a] != scores[b] ? scores[a] > scores[b] : a < b;
  });
  if (s.params.top_k > 0 && static_cast<std::size_t>(s.params.top_k) < ids.size()) {
    ids.resize(static_cast<std::size_t>(s.params.top_k));
  }
  std::vector<double> weights(scores.size(), 0.0);
  double total = 0.0;
  for (const std::size_t id : ids) {
    weights[id] =
        std::exp((scores[id] - scores[ids[0]]) / static_cast<double>(s.params.temperature));
    total += weights[id];
  }
  double sum = 0.0;
  double kept = 0.0;
  for (const std::size_t id : ids) {
    const bool reached = sum >= static_cast<double>(s.params.top_p) * total;
    sum += weights[id];
    if (reached || weights[id] < static_cast<double>(s.params.min_p)) {
      weights[id] = 0.0;
    }
    kept += weights[id];
  }
  for (double& weight : weights) {
    weight /= kept;
  }
  return weights;
}

Scenario random_scenario(std::mt19937_64& random) {
  const auto below = [&](int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); };
  std::normal_distribution<float> normal(0.0F, 3.0F);
  Scenario s;
  const int size = below(4) == 0 ? 3000 + below(3000) : 1 + below(200);
  for (int i = 0; i < size; ++i) {
    s.logits.push_back(below(50) == 0 && i > 0 ? -kInf : normal(random));
  }
  for (int i = below(20); i > 0; --i) {
    s.prompt.push_back(below(size));
  }
  for (int i = below(20); i > 0; --i) {
    s.generated.push_back(below(size));
  }
  if (below(3) == 0) {
    s.allowed.assign(static_cast<std::size_t>(size) / 32 + 1, 0U);
    for (std::uint32_t& word : s.allowed) {
      word = static_cast<std::uint32_t>(random());
    }
    s.allowed[0] |= 1U;
  }
  s.params.temperature = 0.1F + static_cast<float>(below(20)) * 0.095F;
  s.params.top_k = below(2) == 0 ? 0 : 1 + below(60);
  s.params.top_p = below(2) == 0 ? 1.0F : 0.05F + static_cast<float>(below(95)) * 0.01F;
  s.params.min_p = below(3) == 0 ? static_cast<float>(below(100)) * 0.01F : 0.0F;
  s.params.presence_penalty = below(3) == 0 ? 1.5F : 0.0F;
  s.params.frequency_penalty = below(3) == 0 ? -0.7F : 0.0F;
  s.params.repetition_penalty = below(3) == 0 ? 1.3F : 1.0F;
  for (int i = below(4); i > 0; --i) {
    s.params.logit_bias.emplace_back(below(size), normal(random));
  }
  s.params.seed = random();
  s.position = below(100000);
  return s;
}

TEST(BestIds, EqualsASortWithManyTies) {
  std::mt19937_64 random(1);
  std::vector<float> scores;
  std::vector<TokenId> ids;
  for (int round = 0; round < 300; ++round) {
    const std::size_t size = 1 + random() % 8000;
    scores.resize(size);
    ids.resize(size);
    const std::uint64_t values = 1 + random() % 500;
    for (std::size_t i = 0; i < size; ++i) {
      scores[i] = static_cast<float>(random() % values);
      scores[i] = random() % 30 == 0 ? -kInf : scores[i];
    }
    if (round % 3 == 0) {
      std::sort(scores.begin(), scores.end());  // the bar rises all the time
    }
    const std::size_t k = 1 + random() % std::min<std::size_t>(size, 1 + random() % size);
    best_ids(scores, k, ids);
    std::vector<TokenId> want(size);
    for (std::size_t i = 0; i < size; ++i) {
      want[i] = static_cast<TokenId>(i);
    }
    std::sort(want.begin(), want.end(), [&](TokenId a, TokenId b) {
      const float score_a = scores[static_cast<std::size_t>(a)];
      const float score_b = scores[static_cast<std::size_t>(b)];
      return score_a != score_b ? score_a > score_b : a < b;
    });
    for (std::size_t i = 0; i < k; ++i) {
      ASSERT_EQ(ids[i], want[i]) << "round " << round << " rank " << i;
    }
  }
}

TEST(Sampler, DrawsWhatTheReferenceDraws) {
  std::mt19937_64 random(2);
  Sampler sampler(6000);
  for (int round = 0; round < 3000; ++round) {
    const Scenario s = random_scenario(random);
    const auto event = sampler.sample(s.input(), s.params);
    ASSERT_TRUE(event) << event.error().message;
    const std::vector<double> probabilities = reference_probabilities(s);
    // The chosen id's share of [0, 1) must hold the random number, up to fp32 rounding of weights.
    const double u = uniform_at(s.params.seed, s.position);
    const auto chosen = static_cast<std::size_t>(event->token_id);
    ASSERT_GT(probabilities[chosen], 0.0) << "round " << round;
    double low = 0.0;
    for (std::size_t id = 0; id < chosen; ++id) {
      low += probabilities[id];
    }
    ASSERT_GE(u, low - 1e-5) << "round " << round;
    ASSERT_LE(u, low + probabilities[chosen] + 1e-5) << "round " << round;
  }
}

TEST(Sampler, GreedyIsTheLowestOfTheBestAfterPenalties) {
  std::mt19937_64 random(3);
  Sampler sampler(6000);
  for (int round = 0; round < 1000; ++round) {
    Scenario s = random_scenario(random);
    for (float& logit : s.logits) {
      logit = std::round(logit);  // ties
    }
    if (round % 2 == 0) {
      s.params.temperature = 0.0F;
    } else {
      s.params.top_p = 0.0F;
    }
    s.params.repetition_penalty = 1.0F;  // keeps the scores exact in both
    s.params.logit_bias.clear();
    s.params.presence_penalty = 1.5F;
    s.params.frequency_penalty = 0.5F;
    const std::vector<double> scores = reference_scores(s);
    const auto want = std::max_element(scores.begin(), scores.end()) - scores.begin();
    ASSERT_EQ(sampler.sample(s.input(), s.params)->token_id, want) << "round " << round;
  }
}

TEST(Sampler, DistributionMatchesTheProbabilities) {
  Scenario s;
  for (int i = 0; i < 12; ++i) {
    s.logits.push_back(static_cast<float>(i % 5) * 0.8F);
  }
  Sampler sampler(12);
  const auto chi_square = [&] {
    constexpr int kDraws = 40000;
    std::vector<double> counts(s.logits.size());
    for (s.position = 0; s.position < kDraws; ++s.position) {
      ++counts[static_cast<std::size_t>(sampler.sample(s.input(), s.params)->token_id)];
    }
    const std::vector<double> probabilities = reference_probabilities(s);
    double sum = 0.0;
    for (std::size_t id = 0; id < counts.size(); ++id) {
      if (probabilities[id] == 0.0) {
        EXPECT_EQ(counts[id], 0.0) << id;
        continue;
      }
      const double expected = probabilities[id] * kDraws;
      sum += (counts[id] - expected) * (counts[id] - expected) / expected;
    }
    return sum;
  };
  s.params.seed = 11;
  s.params.temperature = 1.0F;
  EXPECT_LT(chi_square(), 31.3);  // 11 degrees of freedom, p = 0.001
  s.params.temperature = 0.5F;
  s.params.top_p = 0.9F;
  EXPECT_LT(chi_square(), 31.3);
  s.params = {};
  s.params.temperature = 1.7F;
  s.params.top_k = 5;
  EXPECT_LT(chi_square(), 31.3);
  s.params = {};
  s.params.temperature = 1.0F;
  s.params.min_p = 0.3F;
  EXPECT_LT(chi_square(), 31.3);
}

TEST(Sampler, DependsOnSeedAndPositionAlone) {
  std::mt19937_64 random(4);
  Sampler one(6000);
  Sampler other(6000);
  std::vector<Scenario> scenarios;
  std::vector<TokenId> tokens;
  for (int i = 0; i < 200; ++i) {
    scenarios.push_back(random_scenario(random));
    tokens.push_back(one.sample(scenarios.back().input(), scenarios.back().params)->token_id);
  }
  for (int i = 199; i >= 0; --i) {  // another order, another scratch history
    const auto index = static_cast<std::size_t>(i);
    ASSERT_EQ(other.sample(scenarios[index].input(), scenarios[index].params)->token_id,
              tokens[index]);
  }
}

TEST(Sampler, LogprobsAreOfTheRawLogits) {
  std::mt19937_64 random(5);
  Sampler sampler(6000);
  for (int round = 0; round < 300; ++round) {
    Scenario s = random_scenario(random);
    s.params.logprobs = static_cast<std::int32_t>(random() % 21);
    const auto event = sampler.sample(s.input(), s.params);
    ASSERT_TRUE(event);
    double total = 0.0;
    for (const float logit : s.logits) {
      total += std::exp(static_cast<double>(logit));
    }
    const auto want = [&](TokenId id) {
      return static_cast<double>(s.logits[static_cast<std::size_t>(id)]) - std::log(total);
    };
    ASSERT_TRUE(event->logprob);
    if (std::isfinite(want(event->token_id))) {
      EXPECT_NEAR(static_cast<double>(*event->logprob), want(event->token_id), 1e-5);
    }
    const std::size_t count =
        std::min(static_cast<std::size_t>(s.params.logprobs), s.logits.size());
    ASSERT_EQ(event->top_logprobs.size(), count);
    std::set<TokenId> ids;
    for (std::size_t i = 0; i < count; ++i) {
      const TokenLogprob& top = event->top_logprobs[i];
      EXPECT_TRUE(ids.insert(top.token_id).second);
      if (std::isfinite(want(top.token_id))) {
        EXPECT_NEAR(static_cast<double>(top.logprob), want(top.token_id), 1e-5);
      } else {
        EXPECT_EQ(top.logprob, -kInf);
      }
      if (i > 0) {
        EXPECT_LE(top.logprob, event->top_logprobs[i - 1].logprob);
      }
    }
  }
  Scenario none;
  none.logits = {1.0F, 2.0F};
  EXPECT_FALSE(sampler.sample(none.input(), none.params)->logprob);
}

TEST(Sampler, AnyTokenCanBeScored) {
  const std::vector<float> logits{1.0F, 3.0F, 2.0F, -1.0F};
  Sampler sampler(4);
  SamplingParams params;
  params.logprobs = 2;
  const TokenEvent best =
      sampler.sample({.logits = logits, .prompt = {}, .generated = {}, .allowed = {}}, params)
          .value();
  const TokenEvent same = sampler.score(logits, 1, 2).value();
  EXPECT_EQ(same.logprob, best.logprob);
  ASSERT_EQ(same.top_logprobs.size(), 2U);
  const TokenEvent second = sampler.score(logits, 2, 0).value();
  EXPECT_EQ(second.logprob, best.top_logprobs[1].logprob);
  EXPECT_TRUE(second.top_logprobs.empty());
  EXPECT_EQ(sampler.score(logits, 4, 0)->logprob, -std::numeric_limits<float>::infinity());
  EXPECT_FALSE(sampler.score(std::vector<float>{1.0F, NAN}, 0, 0));
}

TEST(Sampler, TopLogprobTiesGoToTheLowerId) {
  Scenario s;
  s.logits = {1.0F, 3.0F, 3.0F, 1.0F};
  s.params.logprobs = 3;
  Sampler sampler(4);
  const auto event = sampler.sample(s.input(), s.params);
  ASSERT_EQ(event->top_logprobs.size(), 3U);
  EXPECT_EQ(event->top_logprobs[0].token_id, 1);
  EXPECT_EQ(event->top_logprobs[1].token_id, 2);
  EXPECT_EQ(event->top_logprobs[2].token_id, 0);
}

TEST(Sampler, BrokenLogitsAreErrors) {
  Sampler sampler(40);
  for (const float bad : {kNan, -kNan, kInf}) {
    for (const std::size_t where : {0U, 17U, 39U}) {
      Scenario s;
      s.logits.assign(40, 0.5F);
      s.logits[where] = bad;
      for (const float temperature : {0.0F, 1.0F}) {
        s.params.temperature = temperature;
        const auto event = sampler.sample(s.input(), s.params);
        ASSERT_FALSE(event);
        EXPECT_EQ(event.error().code, ErrorCode::internal);
        EXPECT_NE(event.error().message.find("id " + std::to_string(where)), std::string::npos)
            << event.error().message;
      }
    }
  }
}

TEST(Sampler, NothingAllowedIsAnError) {
  Sampler sampler(40);
  Scenario s;
  s.logits.assign(40, -kInf);
  EXPECT_FALSE(sampler.sample(s.input(), s.params));
  s.logits.assign(40, 1.0F);
  s.allowed = {0, 0};
  EXPECT_FALSE(sampler.sample(s.input(), s.params));
  s.params.temperature = 1.0F;
  EXPECT_FALSE(sampler.sample(s.input(), s.params));
  s.allowed = {0, 1U << 7};
  EXPECT_EQ(sampler.sample(s.input(), s.params)->token_id, 39);
}

TEST(Sampler, ExtremesStayFinite) {
  constexpr float kMax = std::numeric_limits<float>::max();
  Sampler sampler(4);
  Scenario s;
  s.logits = {-kMax, kMax, -kInf, kMax};
  s.prompt = {1, 900, 3, 0};  // an id that cannot be sampled is ignored
  s.params.repetition_penalty = 1e-30F;
  for (const float temperature : {0.0F, kTemperatureMin, 2.0F}) {
    s.params.temperature = temperature;
    for (s.position = 0; s.position < 20; ++s.position) {
      const auto event = sampler.sample(s.input(), s.params);
      ASSERT_TRUE(event) << event.error().message;
      EXPECT_EQ(event->token_id % 2, 1);
    }
  }
}

// The field that validate() names when one member has this value; "none" when it is accepted.
template <typename Member, typename Value>
std::string named_field(Member SamplingParams::* member, const Value& value) {
  SamplingParams params;
  params.*member = value;
  const auto result = validate(params, 100);
  return result ? std::string("none") : result.error().where;
}

TEST(Validate, AcceptsTheEdges) {
  using P = SamplingParams;
  for (const float edge : {0.0F, 2.0F}) {
    EXPECT_EQ(named_field(&P::temperature, edge), "none");
    EXPECT_EQ(named_field(&P::presence_penalty, -edge), "none");
    EXPECT_EQ(named_field(&P::frequency_penalty, edge), "none");
    EXPECT_EQ(named_field(&P::top_p, edge / 2.0F), "none");
    EXPECT_EQ(named_field(&P::min_p, edge / 2.0F), "none");
  }
  EXPECT_EQ(named_field(&P::repetition_penalty, 2.0F), "none");
  EXPECT_EQ(named_field(&P::top_k, 1 << 30), "none");
  EXPECT_EQ(named_field(&P::logprobs, kLogprobsMax), "none");
  SamplingParams params;
  params.logit_bias = {{0, -100.0F}, {99, 100.0F}};
  EXPECT_TRUE(validate(params, 100));
}

TEST(Validate, NamesTheFieldOfEveryBadValue) {
  using P = SamplingParams;
  for (const float bad : {-2.1F, 2.1F, kNan, kInf, -kInf}) {
    EXPECT_EQ(named_field(&P::temperature, bad), "temperature");
    EXPECT_EQ(named_field(&P::top_p, bad), "top_p");
    EXPECT_EQ(named_field(&P::min_p, bad), "min_p");
    EXPECT_EQ(named_field(&P::presence_penalty, bad), "presence_penalty");
    EXPECT_EQ(named_field(&P::frequency_penalty, bad), "frequency_penalty");
    EXPECT_EQ(named_field(&P::repetition_penalty, bad), "repetition_penalty");
  }
  EXPECT_EQ(named_field(&P::repetition_penalty, 0.0F), "repetition_penalty");
  EXPECT_EQ(named_field(&P::top_k, -1), "top_k");
  EXPECT_EQ(named_field(&P::logprobs, kLogprobsMax + 1), "logprobs");
  EXPECT_EQ(named_field(&P::logprobs, -2), "logprobs");
  using Bias = std::vector<std::pair<TokenId, float>>;
  EXPECT_EQ(named_field(&P::logit_bias, Bias{{100, 1.0F}}), "logit_bias");
  EXPECT_EQ(named_field(&P::logit_bias, Bias{{-1, 1.0F}}), "logit_bias");
  EXPECT_EQ(named_field(&P::logit_bias, Bias{{5, kNan}}), "logit_bias.5");
  EXPECT_EQ(
      named_field(&P::logit_bias, Bias(static_cast<std::size_t>(kLogitBiasMax) + 1, {1, 0.0F})),
      "logit_bias");
}

}  // namespace
}  // namespace sluice
