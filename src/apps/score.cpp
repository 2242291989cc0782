#include "apps/score.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <numeric>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "apps/console.h"
#include "apps/model_loader.h"
#include "apps/progress_bar.h"
#include "apps/prompt_options.h"
#include "base/checked_math.h"
#include "base/clock.h"
#include "base/log_sum_exp.h"
#include "model/lone_sequence.h"
#include "platform/aligned_buffer.h"

namespace sluice::apps {
namespace {

// All rows of a step want their logits. Whole prompts go in steps of at most this many bytes of
// logits, so that a real vocabulary (1 MiB per row) does not need the memory of a second model.
constexpr std::int64_t kStepLogitBytesMax = std::int64_t{1} << 30;

struct ScoreOptions {
  RuntimeOptions runtime;
  PromptOptions prompt;
  std::optional<std::string> logits_out;
  std::int64_t prefill_step = 0;  // 0: the largest
};

std::int64_t largest_step(std::int64_t token_count, std::int64_t vocab_size) {
  const std::int64_t rows =
      kStepLogitBytesMax / (vocab_size * static_cast<std::int64_t>(sizeof(float)));
  return std::clamp(token_count, std::int64_t{1},
                    std::clamp(rows, std::int64_t{1}, kStepTokensMax));
}

// Writes all logits and returns the sum over positions 0 .. T-2 of the next token's negative log
// likelihood.
Result<double> score_all(Qwen3_5& model, const std::vector<TokenId>& token_ids,
                         std::optional<SafetensorsRowWriter>& writer, ProgressBar& bar) {
  const auto vocab_size = static_cast<std::size_t>(model.config().vocab_size);
  const auto step = static_cast<std::size_t>(model.options().step_tokens_max);
  LoneSequence sequence =
      SLUICE_TRY(LoneSequence::create(model, static_cast<std::int64_t>(token_ids.size())));
  std::vector<std::int32_t> rows;  // of a step: all
  AlignedBuffer buffer = SLUICE_TRY(AlignedBuffer::allocate(step * vocab_size * sizeof(float)));
  double sum = 0.0;
  for (std::size_t begin = 0; begin < token_ids.size(); begin += step) {
    const std::size_t count = std::min(step, token_ids.size() - begin);
    const std::span<float> logits(buffer.as<float>(), count * vocab_size);
    rows.resize(count);
    std::iota(rows.begin(), rows.end(), 0);
    sequence.forward(std::span(token_ids).subspan(begin, count), rows, logits);
    for (std::size_t i = 0; i < count && begin + i + 1 < token_ids.size(); ++i) {
      const std::span<const float> row = logits.subspan(i * vocab_size, vocab_size);
      sum += log_sum_exp(row) - row[static_cast<std::size_t>(token_ids[begin + i + 1])];
    }
    if (writer) {
      SLUICE_TRY(writer->append(logits));
    }
    bar.update(begin + count, token_ids.size());
  }
  return sum;
}

// What LoneSequence and the logits of a step take.
EngineMemory plan_score(const Qwen3_5& model, std::int64_t token_count) {
  const CacheLayout& layout = model.cache_layout();
  const std::int64_t blocks = ceil_div(token_count, kKvBlockTokens);
  const auto step_logits =
      static_cast<std::size_t>(model.options().step_tokens_max * model.config().vocab_size);
  return {.kv_block_count = blocks,
          .kv_bytes = static_cast<std::size_t>(blocks) * layout.kv_block_bytes,
          .state_bytes = layout.state_slot_bytes,
          .logits_bytes = step_logits * sizeof(float)};
}

Result<int> run_score(const ScoreOptions& options) {
  const std::filesystem::path directory = options.runtime.model;
  const ModelConfig config = SLUICE_TRY(load_model_config(directory));
  const TextSide no_text;
  const std::vector<TokenId> token_ids =
      SLUICE_TRY(make_prompt(options.prompt, directory, no_text, config)).token_ids;
  const auto token_count = static_cast<std::int64_t>(token_ids.size());
  SLUICE_TRY(check_context(token_count, config));

  const std::int64_t step = options.prefill_step != 0
                                ? std::min(options.prefill_step, token_count)
                                : largest_step(token_count, config.vocab_size);
  const std::unique_ptr<LoadedModel> loaded = SLUICE_TRY(
      LoadedModel::load(directory, config, options.runtime,
                        ModelOptions{.step_tokens_max = step, .step_logit_rows_max = step}));
  if (!options.runtime.quiet) {
    print_note("{}\n", describe_memory(loaded->model(), plan_score(loaded->model(), token_count)));
  }
  std::optional<SafetensorsRowWriter> writer;
  if (options.logits_out) {
    writer = SLUICE_TRY(SafetensorsRowWriter::create({.path = *options.logits_out,
                                                      .tensor_name = "logits",
                                                      .rows = token_count,
                                                      .columns = config.vocab_size}));
  }
  const SteadyClock clock;
  const Clock::TimePoint begin = clock.now();
  double sum = 0.0;
  {
    ProgressBar bar("scoring", "tokens", !options.runtime.quiet);
    sum = SLUICE_TRY(score_all(loaded->model(), token_ids, writer, bar));
  }
  const double seconds = seconds_between(begin, clock.now());
  if (writer) {
    SLUICE_TRY(writer->finish());
  }
  fmt::print("tokens: {}\n", token_count);
  if (token_count > 1) {
    fmt::print("mean negative log likelihood: {:.6f} nats per token\n",
               sum / static_cast<double>(token_count - 1));
  }
  fmt::print("tokens per second: {:.1f}\n", static_cast<double>(token_count) / seconds);
  return kExitSuccess;
}

}  // namespace

void add_score_command(CLI::App& program, Action& action) {
  auto options = std::make_shared<ScoreOptions>();
  CLI::App* command =
      program.add_subcommand("score", "Logits of every position of a token sequence");
  add_runtime_options(*command, options->runtime, true);
  add_prompt_options(*command, options->prompt, false);
  command
      ->add_option("--logits-out", options->logits_out,
                   "Safetensors file for the tensor logits [tokens, vocabulary], fp32")
      ->type_name("FILE");
  check_integer(*command
                     ->add_option("--prefill-step", options->prefill_step,
                                  "Tokens of one forward pass; 0: as many as memory allows")
                     ->type_name("N")
                     ->capture_default_str(),
                {0, kStepTokensMax});
  command->callback([options, &action] { action = [options] { return run_score(*options); }; });
}

}  // namespace sluice::apps
