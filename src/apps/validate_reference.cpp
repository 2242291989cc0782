#include "apps/validate_reference.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <memory>
#include <span>
#include <utility>

#include "apps/progress_bar.h"
#include "apps/served_model_facts.h"
#include "platform/mapped_file.h"
#include "platform/memory_use.h"
#include "validate/compared_logits.h"
#include "validate/filler_text.h"
#include "validate/reference_check.h"
#include "weights/memory_estimate.h"
#include "weights/packed_model.h"

namespace sluice::apps {
namespace {

constexpr std::size_t kTextBytesMax = std::size_t{8} << 20;  // what the tokenizer takes
constexpr std::int64_t kTextTokens = 4096;                   // of the text that is made up
constexpr std::int64_t kTextTokensQuick = 1024;
constexpr double kBytesPerToken = 8.0;        // more than any tokenizer needs for plain English
constexpr std::int64_t kRepackedTokens = 64;  // every weight but embedding rows has a part in each
constexpr std::size_t kMemorySpare = std::size_t{512} << 20;

Result<Tokenizer> tokenizer_of(const std::filesystem::path& directory) {
  Result<Tokenizer> tokenizer = Tokenizer::load(directory);
  if (!tokenizer) {
    tokenizer.error().message =
        fmt::format("--reference needs a tokenizer: {}", tokenizer.error().message);
  }
  return tokenizer;
}

Result<std::string> text_of(const ValidateOptions& options) {
  if (!options.reference_text.empty()) {
    return read_text_file(options.reference_text, kTextBytesMax);
  }
  validate::FillerText filler(options.exactness.seed, kBytesPerToken);
  return filler.tokens(options.quick ? kTextTokensQuick : kTextTokens);
}

// Why the reference cannot be held beside the model; none when it can. A packed one is mapped.
std::optional<std::string> memory_missing(const ModelConfig& config, const Checkpoint& checkpoint) {
  const std::optional<std::size_t> available = available_memory();
  const std::size_t needed =
      static_cast<std::size_t>(weight_bytes(config, WeightPreset::bf16).text) + kMemorySpare;
  if (checkpoint.packed() != nullptr || !available || *available >= needed) {
    return std::nullopt;
  }
  return fmt::format("the reference needs {}, {} are free (packed as bf16 it needs less)",
                     format_bytes(needed), format_bytes(*available));
}

Result<std::unique_ptr<Qwen3_5>> load_beside(LoadedModel& loaded, const ReferencePlan& plan,
                                             const Checkpoint& checkpoint,
                                             std::optional<WeightPreset> preset, bool quiet) {
  ModelOptions options = loaded.model().options();
  options.preset = preset;
  options.vision_patches_max = 0;
  ProgressBar bar("loading the reference", "bytes", !quiet);
  return Qwen3_5::load(plan.config, checkpoint, loaded.table(), loaded.pool(), options,
                       [&](std::size_t done, std::size_t total) { bar.update(done, total); });
}

// A packed directory against its source packed again: where sluice.json says that it was packed
// from these weights, the bits must be the same. What to add to the summary.
Result<std::string> compare_repacked(LoadedModel& loaded, const ReferencePlan& plan,
                                     const Checkpoint& checkpoint, bool quiet,
                                     validate::Check& check) {
  const PackedModel* packed = loaded.checkpoint().packed();
  if (packed == nullptr || checkpoint.packed() != nullptr) {
    return std::string();
  }
  const std::span<const TokenId> ids =
      std::span(plan.token_ids)
          .first(std::min<std::size_t>(plan.token_ids.size(), kRepackedTokens));
  const std::unique_ptr<Qwen3_5> again =
      SLUICE_TRY(load_beside(loaded, plan, checkpoint, loaded.preset(), quiet));
  const std::array pieces{kRepackedTokens};
  const std::optional<std::string> different =
      validate::difference(SLUICE_TRY(validate::logits_of(*again, ids, pieces)),
                           SLUICE_TRY(validate::logits_of(loaded.model(), ids, pieces)));
  const std::string_view preset = to_string(loaded.preset());
  if (!different) {
    return fmt::format("; the same bits as the reference packed as {} here", preset);
  }
  if (packed->manifest().source != model_fingerprint(checkpoint, WeightPreset::bf16)) {
    return "; not packed from the reference by this version";
  }
  check.add_finding(
      fmt::format("packed from the reference, but not what packing it as {} makes: "
                  "{}",
                  preset, *different));
  return std::string();
}

// On one line and quoted: line ends and other control characters become spaces.
std::string quoted(const Tokenizer& tokenizer, std::span<const TokenId> ids) {
  const Result<std::string> text = tokenizer.decode(ids, false);
  if (!text) {
    return fmt::format("id {}", ids.back());
  }
  std::string line = *text;
  std::ranges::replace_if(line, [](char c) { return static_cast<unsigned char>(c) < ' '; }, ' ');
  return '"' + line + '"';
}

}  // namespace

Result<std::optional<ReferencePlan>> plan_reference(const ValidateOptions& options,
                                                    const std::filesystem::path& directory,
                                                    const ModelConfig& config) {
  if (options.reference.empty()) {
    return std::nullopt;
  }
  const std::filesystem::path other = options.reference;
  ModelConfig other_config = SLUICE_TRY(load_model_config(other));
  if (other_config.vocab_size != config.vocab_size) {
    return fail(ErrorCode::invalid_argument,
                fmt::format("--reference {}: vocab_size {}, the model has {}", other.string(),
                            other_config.vocab_size, config.vocab_size));
  }
  const std::string text = SLUICE_TRY(text_of(options));
  const bool is_file = !options.reference_text.empty();
  const std::string name = is_file ? options.reference_text : "made-up sentences";
  // Text of a file may be a rendered conversation.
  const ControlTokens control = is_file ? ControlTokens::parse : ControlTokens::literal;
  Tokenizer tokenizer = SLUICE_TRY(tokenizer_of(directory));
  std::vector<TokenId> token_ids = SLUICE_TRY(tokenizer.encode(text, control));
  const Tokenizer other_tokenizer = SLUICE_TRY(tokenizer_of(other));
  if (SLUICE_TRY(other_tokenizer.encode(text, control)) != token_ids) {
    return fail(ErrorCode::invalid_argument,
                fmt::format("--reference {}: its tokenizer makes other tokens of {} than that of "
                            "the model",
                            other.string(), name));
  }
  if (!is_file) {
    token_ids.resize(
        std::min(token_ids.size(),
                 static_cast<std::size_t>(options.quick ? kTextTokensQuick : kTextTokens)));
  }
  if (token_ids.size() < 2) {
    return fail(ErrorCode::invalid_argument,
                fmt::format("{}: {} tokens, want at least 2", name, token_ids.size()));
  }
  return ReferencePlan{.directory = other,
                       .config = std::move(other_config),
                       .tokenizer = std::move(tokenizer),
                       .text_name = name,
                       .token_ids = std::move(token_ids)};
}

Result<void> run_reference_check(const ReferencePlan& plan, LoadedModel& loaded, bool quiet,
                                 validate::Check& check) {
  const Checkpoint checkpoint = SLUICE_TRY(Checkpoint::open(plan.directory));
  if (const std::optional<std::string> missing = memory_missing(plan.config, checkpoint)) {
    check.skip(*missing);
    return {};
  }
  const std::string repacked = SLUICE_TRY(compare_repacked(loaded, plan, checkpoint, quiet, check));
  const std::unique_ptr<Qwen3_5> reference =
      SLUICE_TRY(load_beside(loaded, plan, checkpoint, std::nullopt, quiet));
  ProgressBar bar("comparing", "tokens", !quiet);
  SLUICE_TRY(validate::check_reference(
      {.model = loaded.model(), .reference = *reference, .pool = loaded.pool()},
      {.name = plan.text_name,
       .token_ids = plan.token_ids,
       .spell = [&](std::span<const TokenId> ids) { return quoted(plan.tokenizer, ids); }},
      [&](std::int64_t tokens) {
        bar.update(static_cast<std::size_t>(tokens), plan.token_ids.size());
      },
      check));
  check.summary += repacked;
  return {};
}

}  // namespace sluice::apps
