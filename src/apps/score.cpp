#include "apps/score.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
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

// One sequence alone in its cache: blocks 0, 1, ... and slot 0.
class SoleSequence {
 public:
  static Result<SoleSequence> create(const CacheLayout& layout, std::int64_t token_count) {
    SoleSequence sequence;
    const std::int64_t blocks = ceil_div(token_count, kKvBlockTokens);
    sequence.kv_ = SLUICE_TRY(
        AlignedBuffer::allocate(static_cast<std::size_t>(blocks) * layout.kv_block_bytes));
    sequence.state_ = SLUICE_TRY(AlignedBuffer::allocate(layout.state_slot_bytes));
    sequence.block_table_.resize(static_cast<std::size_t>(blocks));
    std::iota(sequence.block_table_.begin(), sequence.block_table_.end(), 0);
    return sequence;
  }

  // Computes tokens [position, position + token_ids.size()); logits [that many, vocab_size].
  void forward(Qwen3_5& model, std::span<const TokenId> token_ids, std::int64_t position,
               std::span<float> logits) {
    const auto count = static_cast<std::int64_t>(token_ids.size());
    rows_.resize(token_ids.size());
    std::iota(rows_.begin(), rows_.end(), 0);
    rope_positions_.resize(3 * token_ids.size());
    for (std::size_t axis = 0; axis < 3; ++axis) {  // text: all three axes count alike
      std::iota(
          rope_positions_.begin() + static_cast<std::ptrdiff_t>(axis * token_ids.size()),
          rope_positions_.begin() + static_cast<std::ptrdiff_t>((axis + 1) * token_ids.size()),
          static_cast<std::int32_t>(position));
    }
    const auto blocks = static_cast<std::size_t>(ceil_div(position + count, kKvBlockTokens));
    const SequenceSlice slice{.position = position,
                              .token_begin = 0,
                              .token_count = count,
                              .block_table = std::span(block_table_).first(blocks),
                              .state_slot = 0};
    const ForwardBatch batch{.token_ids = token_ids,
                             .rope_positions = rope_positions_,
                             .sequences = std::span(&slice, 1),
                             .logit_rows = rows_};
    model.forward(batch, {.kv_blocks = kv_.data(), .state_slots = state_.data()}, logits);
  }

 private:
  AlignedBuffer kv_;
  AlignedBuffer state_;
  std::vector<std::int32_t> block_table_;
  std::vector<std::int32_t> rows_;            // [T] of the step: every row wants logits
  std::vector<std::int32_t> rope_positions_;  // [3][T]
};

// -log softmax(logits)[token], in double.
double negative_log_likelihood(std::span<const float> logits, TokenId token) {
  const double largest = *std::ranges::max_element(logits);
  double sum = 0.0;
  for (const float logit : logits) {
    sum += std::exp(logit - largest);
  }
  return largest + std::log(sum) - logits[static_cast<std::size_t>(token)];
}

// Writes all logits and returns the sum over positions 0 .. T-2 of the next token's negative log
// likelihood.
Result<double> score_all(Qwen3_5& model, const std::vector<TokenId>& token_ids,
                         std::optional<SafetensorsRowWriter>& writer, ProgressBar& bar) {
  const auto vocab_size = static_cast<std::size_t>(model.config().vocab_size);
  const auto step = static_cast<std::size_t>(model.options().step_tokens_max);
  SoleSequence sequence = SLUICE_TRY(
      SoleSequence::create(model.cache_layout(), static_cast<std::int64_t>(token_ids.size())));
  AlignedBuffer buffer = SLUICE_TRY(AlignedBuffer::allocate(step * vocab_size * sizeof(float)));
  double sum = 0.0;
  for (std::size_t begin = 0; begin < token_ids.size(); begin += step) {
    const std::size_t count = std::min(step, token_ids.size() - begin);
    const std::span<float> logits(buffer.as<float>(), count * vocab_size);
    sequence.forward(model, std::span(token_ids).subspan(begin, count),
                     static_cast<std::int64_t>(begin), logits);
    for (std::size_t i = 0; i < count && begin + i + 1 < token_ids.size(); ++i) {
      sum += negative_log_likelihood(logits.subspan(i * vocab_size, vocab_size),
                                     token_ids[begin + i + 1]);
    }
    if (writer) {
      SLUICE_TRY(writer->append(logits));
    }
    bar.update(begin + count, token_ids.size());
  }
  return sum;
}

// What SoleSequence and the logits of a step take.
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
  const std::unique_ptr<LoadedModel> loaded = SLUICE_TRY(LoadedModel::load(
      directory, config, options.runtime,
      ModelOptions{.step_tokens_max = step, .step_logit_rows_max = step, .vision = false}));
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
