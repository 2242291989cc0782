#include "validate/kernel_checks.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <memory>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "kernels/kernel_table.h"
#include "kernels/select.h"
#include "model/qwen3_5.h"
#include "platform/memory_use.h"
#include "validate/compared_logits.h"

namespace sluice::validate {
namespace {

constexpr std::int64_t kIsaTokens = 70;    // crosses a block and two anchors
constexpr std::int64_t kRefTokensMin = 9;  // two rows of products and a rest
constexpr double kRefFlopsMax = 6e9;       // some seconds of the reference kernels
constexpr std::size_t kMemorySpare = std::size_t{256} << 20;

// `count` token ids below vocab_size, the same for the same seed.
std::vector<TokenId> made_up_tokens(std::int64_t count, std::int64_t vocab_size,
                                    std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<TokenId> ids(static_cast<std::size_t>(count));
  for (TokenId& id : ids) {
    id = static_cast<TokenId>(random() % static_cast<std::uint64_t>(vocab_size));
  }
  return ids;
}

// Tokens that the reference kernels can be given; 0: not even the fewest.
std::int64_t ref_tokens(const Qwen3_5& model) {
  const double flops_per_token = static_cast<double>(model.weight_bytes());  // 2 per bf16 weight
  const double tokens = kRefFlopsMax / flops_per_token;
  return tokens < static_cast<double>(kRefTokensMin)
             ? 0
             : std::min(kIsaTokens, static_cast<std::int64_t>(tokens));
}

// Why no second copy of the model can be loaded; none when it can.
std::optional<std::string> memory_missing(const Qwen3_5& model) {
  const std::optional<std::size_t> available = available_memory();
  const std::size_t needed = model.weight_bytes() + model.workspace_bytes() + kMemorySpare;
  if (!available || *available >= needed) {
    return std::nullopt;
  }
  return fmt::format("needs {} MiB for a second copy, {} MiB are free", needed >> 20,
                     *available >> 20);
}

}  // namespace

Result<void> check_isa(const LoadedParts& parts, std::uint64_t seed, Check& check) {
  const std::int64_t vocab_size = parts.model.config().vocab_size;
  const std::vector<TokenId> ids = made_up_tokens(kIsaTokens, vocab_size, seed);
  check.table = Table{.columns = {"kernels", "tokens", "result"}, .rows = {}};
  check.table->rows.push_back(
      {std::string(parts.table.name), std::to_string(kIsaTokens), "compared with"});
  std::int64_t compared = 0;
  for (const kernels::KernelTable* table : kernels::supported_tables(detect_cpu_features())) {
    if (table == &parts.table) {
      continue;
    }
    const bool is_ref = std::string_view(table->name) == "ref";
    const std::int64_t tokens = is_ref ? ref_tokens(parts.model) : kIsaTokens;
    std::vector<std::string>& row = check.table->rows.emplace_back(
        std::vector<std::string>{std::string(table->name), std::to_string(tokens), ""});
    if (tokens == 0) {
      row[2] = "skipped: too slow for a model of this size";
      continue;
    }
    if (const std::optional<std::string> missing = memory_missing(parts.model)) {
      row[2] = "skipped: " + *missing;
      continue;
    }
    ModelOptions options = parts.model.options();
    options.vision_patches_max = 0;
    const std::unique_ptr<Qwen3_5> other = SLUICE_TRY(
        Qwen3_5::load(parts.model.config(), parts.checkpoint, *table, parts.pool, options, {}));
    const std::span<const TokenId> prompt = std::span(ids).first(static_cast<std::size_t>(tokens));
    const Logits wanted = SLUICE_TRY(logits_of(parts.model, prompt, std::array{tokens}));
    const Logits found = SLUICE_TRY(logits_of(*other, prompt, std::array{tokens}));
    ++compared;
    const std::optional<std::string> wrong = difference(wanted, found);
    row[2] = wrong ? "DIFFERENT" : "equal";
    if (wrong) {
      check.add_finding(fmt::format("{} against {}: {}", table->name, parts.table.name, *wrong));
    }
  }
  check.counts.push_back({"compared", compared});
  check.summary = fmt::format("{} kernel sets compared with {}, {} differ", compared,
                              parts.table.name, check.finding_count);
  if (compared == 0) {
    check.skip("no second kernel set could be compared");
  }
  return {};
}

Result<void> check_cuts(Qwen3_5& model, std::int64_t prompt_tokens, std::uint64_t seed,
                        Check& check) {
  const std::vector<TokenId> ids =
      made_up_tokens(prompt_tokens, model.config().vocab_size, seed + 1);
  const std::int64_t whole = model.options().step_tokens_max;
  const Logits wanted = SLUICE_TRY(logits_of(model, ids, std::array{whole}));
  std::vector<std::pair<std::string, std::vector<std::int64_t>>> cuts;
  for (const std::int64_t piece : {1, 7, 63, 64, 65}) {
    cuts.emplace_back(std::to_string(piece), std::vector{piece});
  }
  std::mt19937_64 random(seed);
  std::vector<std::int64_t> mixed(32);
  for (std::int64_t& piece : mixed) {
    piece = 1 + static_cast<std::int64_t>(random() % 96);
  }
  cuts.emplace_back("random, 1 to 96", mixed);
  check.table = Table{.columns = {"tokens of a step", "result"}, .rows = {}};
  check.table->rows.push_back({fmt::format("at most {}", whole), "compared with"});
  for (const auto& [name, pieces] : cuts) {
    const Logits found = SLUICE_TRY(logits_of(model, ids, pieces));
    const std::optional<std::string> wrong = difference(wanted, found);
    check.table->rows.push_back({name, wrong ? "DIFFERENT" : "equal"});
    if (wrong) {
      check.add_finding(fmt::format("steps of {}: {}", name, *wrong));
    }
  }
  check.counts.push_back({"compared", static_cast<std::int64_t>(cuts.size())});
  check.summary = fmt::format("{} ways to cut {} tokens, {} differ", cuts.size(), prompt_tokens,
                              check.finding_count);
  return {};
}

}  // namespace sluice::validate
