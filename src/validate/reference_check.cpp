#include "validate/reference_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <numeric>

#include "base/check.h"
#include "base/log_sum_exp.h"
#include "model/lone_sequence.h"
#include "model/qwen3_5.h"
#include "platform/thread_pool.h"

namespace sluice::validate {
namespace {

constexpr std::size_t kWorstRows = 8;
constexpr std::int64_t kSpelledBefore = 6;  // tokens shown before one of these

TokenId best_of(std::span<const float> logits) {
  return static_cast<TokenId>(std::ranges::max_element(logits) - logits.begin());
}

// One model on one window.
class Reader {
 public:
  static Result<Reader> create(Qwen3_5& model, std::int64_t window) {
    return Reader(model, SLUICE_TRY(LoneSequence::create(model, window)));
  }

  void read(std::span<const TokenId> token_ids) {
    rows_.resize(token_ids.size());
    std::iota(rows_.begin(), rows_.end(), 0);
    logits_.resize(token_ids.size() * vocab_size_);
    sequence_.forward(token_ids, rows_, logits_);
  }
  std::span<const float> row(std::size_t at) const {
    return std::span(logits_).subspan(at * vocab_size_, vocab_size_);
  }

 private:
  Reader(Qwen3_5& model, LoneSequence sequence)
      : sequence_(std::move(sequence)),
        vocab_size_(static_cast<std::size_t>(model.config().vocab_size)) {}

  LoneSequence sequence_;
  std::size_t vocab_size_;
  std::vector<std::int32_t> rows_;
  std::vector<float> logits_;
};

std::int64_t step_of(const Qwen3_5& model) {
  return std::min(model.options().step_tokens_max, model.options().step_logit_rows_max);
}

// A position of the text and what was found there.
struct Position {
  std::int64_t at = 0;      // of the last token before
  std::int64_t window = 0;  // where its window begins
  RowComparison row;
};

// Appends one entry per token of the window but the last.
Result<void> compare_window(const ReferencePair& pair, std::span<const TokenId> token_ids,
                            std::int64_t begin, std::vector<Position>& positions) {
  const auto count = static_cast<std::int64_t>(token_ids.size());
  Reader model = SLUICE_TRY(Reader::create(pair.model, count));
  Reader reference = SLUICE_TRY(Reader::create(pair.reference, count));
  const std::int64_t step = std::min(step_of(pair.model), step_of(pair.reference));
  for (std::int64_t at = 0; at + 1 < count; at += step) {
    const std::int64_t rows = std::min(step, count - 1 - at);
    const std::span<const TokenId> ids =
        token_ids.subspan(static_cast<std::size_t>(at), static_cast<std::size_t>(rows) + 1);
    model.read(ids.first(static_cast<std::size_t>(rows)));
    reference.read(ids.first(static_cast<std::size_t>(rows)));
    const std::size_t before = positions.size();
    positions.resize(before + static_cast<std::size_t>(rows));
    pair.pool.for_ranges(rows, 1, [&](std::int64_t first, std::int64_t end) {
      for (std::int64_t row = first; row < end; ++row) {
        const auto i = static_cast<std::size_t>(row);
        positions[before + i] = {.at = begin + at + row,
                                 .window = begin,
                                 .row = compare_rows(model.row(i), reference.row(i), ids[i + 1])};
      }
    });
  }
  return {};
}

// Not a number counts as the worst.
double badness(const Position& position) {
  return std::isnan(position.row.kl) ? std::numeric_limits<double>::infinity() : position.row.kl;
}

std::string spelled(const ReferenceText& text, std::int64_t begin, std::int64_t count) {
  return text.spell(std::span(text.token_ids)
                        .subspan(static_cast<std::size_t>(begin), static_cast<std::size_t>(count)));
}

Table worst_of(std::vector<Position> positions, const ReferenceText& text) {
  const auto end =
      positions.begin() + static_cast<std::ptrdiff_t>(std::min(kWorstRows, positions.size()));
  std::ranges::partial_sort(positions, end, std::ranges::greater(), badness);
  Table table{.columns = {"position", "after", "next", "reference", "model", "KL"}, .rows = {}};
  for (auto at = positions.begin(); at != end && at->row.kl != 0.0; ++at) {
    const std::int64_t begin = std::max(at->window, at->at + 1 - kSpelledBefore);
    table.rows.push_back(
        {std::to_string(at->at + 1), spelled(text, begin, at->at + 1 - begin),
         spelled(text, at->at + 1, 1), text.spell(std::span(&at->row.reference_best, 1)),
         text.spell(std::span(&at->row.best, 1)), fmt::format("{:.4g}", at->row.kl)});
  }
  return table;
}

void judge(const std::vector<Position>& positions, const ReferencePair& pair,
           const ReferenceText& text, Check& check) {
  const auto count = static_cast<double>(positions.size());
  double kl = 0.0;
  double nll = 0.0;
  double reference_nll = 0.0;
  std::int64_t same = 0;
  for (const Position& position : positions) {
    kl += position.row.kl / count;
    nll += position.row.nll / count;
    reference_nll += position.row.reference_nll / count;
    same += position.row.best == position.row.reference_best ? 1 : 0;
  }
  SLUICE_CHECK(pair.model.options().preset.has_value());
  const WeightPreset preset = *pair.model.options().preset;
  const double limit = divergence_max(preset);
  check.counts = {{"positions", static_cast<std::int64_t>(positions.size())}, {"same_token", same}};
  check.figures = {{"kl_nats", kl},
                   {"kl_nats_max", limit},
                   {"perplexity", std::exp(nll)},
                   {"reference_perplexity", std::exp(reference_nll)}};
  check.summary = fmt::format(
      "{} tokens of {}: KL {:.5f} nats per token, likeliest token the same at {:.2f} %, perplexity "
      "{:.4f}, of the reference {:.4f}",
      positions.size(), text.name, kl, 100.0 * static_cast<double>(same) / count, std::exp(nll),
      std::exp(reference_nll));
  if (!(kl <= limit)) {
    check.add_finding(
        fmt::format("KL {:.3f} nats per token from the reference, at most {} for {}: packed "
                    "wrongly, or made of other weights",
                    kl, limit, to_string(preset)));
  }
}

}  // namespace

RowComparison compare_rows(std::span<const float> logits, std::span<const float> reference,
                           TokenId next) {
  const double q_sum = log_sum_exp(logits);
  const double p_sum = log_sum_exp(reference);
  double kl = 0.0;
  for (std::size_t i = 0; i < logits.size(); ++i) {
    const double log_p = reference[i] - p_sum;
    kl += std::exp(log_p) * (log_p - (logits[i] - q_sum));
  }
  const auto at = static_cast<std::size_t>(next);
  return {.kl = std::isnan(kl) ? kl : std::max(kl, 0.0),  // rounding can leave it below
          .nll = q_sum - logits[at],
          .reference_nll = p_sum - reference[at],
          .best = best_of(logits),
          .reference_best = best_of(reference)};
}

double divergence_max(WeightPreset preset) {
  switch (preset) {
    case WeightPreset::bf16:
      return 0.05;
    case WeightPreset::mlp_fp8:
    case WeightPreset::fp8:
    case WeightPreset::int8:
      return 0.1;
    case WeightPreset::int4:
      break;
  }
  return 1.0;
}

Result<void> check_reference(const ReferencePair& pair, const ReferenceText& text,
                             const std::function<void(std::int64_t tokens)>& progress,
                             Check& check) {
  SLUICE_CHECK(text.token_ids.size() >= 2);
  const auto count = static_cast<std::int64_t>(text.token_ids.size());
  const std::int64_t context = std::min(pair.model.config().max_position_embeddings,
                                        pair.reference.config().max_position_embeddings);
  const std::int64_t window = std::clamp(context, std::int64_t{2}, kReferenceWindowTokens);
  std::vector<Position> positions;
  for (std::int64_t begin = 0; begin < count; begin += window) {
    const std::int64_t tokens = std::min(window, count - begin);
    SLUICE_TRY(compare_window(
        pair,
        std::span(text.token_ids)
            .subspan(static_cast<std::size_t>(begin), static_cast<std::size_t>(tokens)),
        begin, positions));
    if (progress) {
      progress(begin + tokens);
    }
  }
  judge(positions, pair, text, check);
  check.table = worst_of(std::move(positions), text);
  return {};
}

}  // namespace sluice::validate
