// Two models on one text, and the arithmetic that compares them.
#include "validate/reference_check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/check.h"
#include "model/qwen3_5.h"
#include "platform/thread_pool.h"

namespace sluice::validate {
namespace {

using testing::HasSubstr;

constexpr TokenId kNanToken = 60;
constexpr std::int64_t kVocabSize = 61;
constexpr std::int64_t kStep = 7;

// Logits follow from the last token and its position. After kNanToken one of them is no number.
class SmallModel final : public Qwen3_5 {
 public:
  explicit SmallModel(std::function<float(std::int64_t position)> factor = {})
      : factor_(std::move(factor)) {
    config_.vocab_size = kVocabSize;
    layout_.kv_block_bytes = 64;
    layout_.state_slot_bytes = 64;
  }

  const ModelConfig& config() const override { return config_; }
  const CacheLayout& cache_layout() const override { return layout_; }
  const ModelOptions& options() const override { return options_; }
  std::size_t weight_bytes() const override { return 0; }
  std::size_t workspace_bytes() const override { return 0; }

  void forward(const ForwardBatch& batch, const CacheMemory& /*cache*/,
               std::span<float> logits) override {
    SLUICE_CHECK(std::ssize(batch.token_ids) <= kStep);
    for (std::size_t row = 0; row < batch.logit_rows.size(); ++row) {
      const auto at = static_cast<std::size_t>(batch.logit_rows[row]);
      const std::int64_t position = batch.rope_positions[at];
      const std::int64_t token = batch.token_ids[at];
      for (std::int64_t id = 0; id < kVocabSize; ++id) {
        const auto logit = static_cast<float>((token * 7 + position * 5 + id * 11) % 23) / 4.0F;
        logits[row * kVocabSize + static_cast<std::size_t>(id)] =
            token == kNanToken && id == 3 ? std::nanf("")
                                          : logit * (factor_ ? factor_(position) : 1.0F);
      }
    }
  }

 private:
  std::function<float(std::int64_t)> factor_;
  ModelConfig config_;
  CacheLayout layout_;
  ModelOptions options_{.preset = WeightPreset::int4, .step_logit_rows_max = kStep};
};

ReferenceText text_of(std::vector<TokenId> token_ids) {
  return {.name = "a text", .token_ids = std::move(token_ids), .spell = [](auto ids) {
            std::string spelled;
            for (const TokenId id : ids) {
              spelled += '<' + std::to_string(id) + '>';
            }
            return spelled;
          }};
}

std::vector<TokenId> some_tokens(std::size_t count) {
  std::vector<TokenId> ids;
  for (std::size_t i = 0; i < count; ++i) {
    ids.push_back(static_cast<TokenId>(i * i % 50));
  }
  return ids;
}

double figure(const Check& check, const std::string& name) {
  const auto at = std::ranges::find(check.figures, name, &Figure::name);
  return at == check.figures.end() ? std::nan("") : at->value;
}

TEST(CompareRowsTest, DivergenceAndLikelihoodsAreThoseOfTheFormula) {
  // Softmax of these: 1/2, 1/4, 1/4 and 1/4, 1/2, 1/4.
  const float two = std::log(2.0F);
  const std::vector<float> reference{two, 0.0F, 0.0F};
  const std::vector<float> logits{1.0F, 1.0F + two, 1.0F};  // a shift changes nothing
  const RowComparison row = compare_rows(logits, reference, 1);
  EXPECT_NEAR(row.kl, 0.25 * std::log(2.0), 1e-6);
  EXPECT_NEAR(row.nll, std::log(2.0), 1e-6);
  EXPECT_NEAR(row.reference_nll, std::log(4.0), 1e-6);
  EXPECT_EQ(row.best, 1);
  EXPECT_EQ(row.reference_best, 0);
}

TEST(CompareRowsTest, EqualRowsAreExactlyZeroApart) {
  const std::vector<float> logits{0.3F, -41.7F, 12.0F, 12.0F, 1e-3F};
  const RowComparison row = compare_rows(logits, logits, 4);
  EXPECT_EQ(row.kl, 0.0);
  EXPECT_EQ(row.best, 2);
}

TEST(CompareRowsTest, ALogitThatIsNoNumberMakesTheDivergenceNone) {
  const std::vector<float> reference{0.0F, 1.0F};
  for (const float bad :
       {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
    EXPECT_TRUE(std::isnan(compare_rows(std::vector{0.0F, bad}, reference, 0).kl));
  }
}

TEST(ReferenceCheckTest, AModelIsNotApartFromItself) {
  SmallModel model;
  SmallModel reference;
  ThreadPool pool(2);
  Check check;
  std::vector<std::int64_t> seen;
  ASSERT_TRUE(check_reference(
      {.model = model, .reference = reference, .pool = pool},
      text_of(some_tokens(2 * kReferenceWindowTokens + 3)),
      [&](std::int64_t tokens) { seen.push_back(tokens); }, check));
  EXPECT_EQ(check.outcome, Outcome::pass);
  EXPECT_EQ(figure(check, "kl_nats"), 0.0);
  EXPECT_EQ(figure(check, "perplexity"), figure(check, "reference_perplexity"));
  // Of the three windows each has one position that nothing follows.
  EXPECT_EQ(check.counts[0].value, 2 * kReferenceWindowTokens);
  EXPECT_EQ(check.counts[1].value, check.counts[0].value);
  EXPECT_EQ(seen, (std::vector<std::int64_t>{kReferenceWindowTokens, 2 * kReferenceWindowTokens,
                                             2 * kReferenceWindowTokens + 3}));
  EXPECT_TRUE(check.table->rows.empty());
}

TEST(ReferenceCheckTest, TheWorstPositionsComeFirst) {
  SmallModel model(
      [](std::int64_t position) { return position < 9 || position > 14 ? 1.0F : 1.1F; });
  SmallModel reference;
  ThreadPool pool(1);
  Check check;
  ASSERT_TRUE(check_reference({.model = model, .reference = reference, .pool = pool},
                              text_of(some_tokens(22)), {}, check));
  EXPECT_EQ(check.outcome, Outcome::pass);  // a tenth more is little
  EXPECT_GT(figure(check, "kl_nats"), 0.0);
  ASSERT_EQ(check.table->rows.size(), 6U);
  double last = std::numeric_limits<double>::infinity();
  for (const std::vector<std::string>& row : check.table->rows) {
    EXPECT_GE(std::stoi(row[0]), 10);  // tokens read
    EXPECT_LE(std::stoi(row[0]), 15);
    EXPECT_LE(std::stod(row[5]), last);
    last = std::stod(row[5]);
  }
}

TEST(ReferenceCheckTest, AnotherModelFails) {
  SmallModel model([](std::int64_t /*position*/) { return -1.0F; });
  SmallModel reference;
  ThreadPool pool(1);
  Check check;
  ASSERT_TRUE(check_reference({.model = model, .reference = reference, .pool = pool},
                              text_of(some_tokens(22)), {}, check));
  EXPECT_EQ(check.outcome, Outcome::fail);
  EXPECT_GT(figure(check, "kl_nats"), figure(check, "kl_nats_max"));
  EXPECT_EQ(check.counts[1].value, 0);
}

TEST(ReferenceCheckTest, LogitsThatAreNoNumbersFail) {
  SmallModel model;
  SmallModel reference;
  ThreadPool pool(1);
  Check check;
  ASSERT_TRUE(check_reference({.model = model, .reference = reference, .pool = pool},
                              text_of({1, 2, kNanToken, 3, 4}), {}, check));
  EXPECT_EQ(check.outcome, Outcome::fail);
  ASSERT_EQ(check.findings.size(), 1U);
  EXPECT_THAT(check.findings[0], HasSubstr("at most 1 for int4"));
  EXPECT_EQ(check.table->rows[0][0], "3");
  EXPECT_EQ(check.table->rows[0][1], "<1><2><60>");
  EXPECT_EQ(check.table->rows[0][2], "<3>");
}

TEST(ReferenceCheckTest, NarrowerWeightsMayBeFartherAway) {
  EXPECT_LT(divergence_max(WeightPreset::bf16), divergence_max(WeightPreset::int8));
  EXPECT_LT(divergence_max(WeightPreset::int8), divergence_max(WeightPreset::int4));
}

}  // namespace
}  // namespace sluice::validate
