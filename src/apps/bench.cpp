#include "apps/bench.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "apps/bench_report.h"
#include "apps/bench_run.h"
#include "apps/bench_url.h"
#include "apps/model_loader.h"
#include "apps/progress_bar.h"
#include "apps/version.h"
#include "base/clock.h"
#include "kernels/peak.h"
#include "model/step_cost.h"
#include "ops/ceiling.h"
#include "platform/memory_use.h"
#include "weights/memory_estimate.h"
#include "weights/released_shapes.h"

namespace sluice::apps {
namespace {

constexpr const char* kDefaultShape = "qwen3.5-0.8b";
// Part of the available memory that a run may take: the rest is for what nobody planned.
constexpr double kMemoryShare = 0.95;

struct BenchOptions {
  RuntimeOptions runtime;
  std::optional<std::string> shape;
  std::int64_t layers = 0;  // 0: all
  std::vector<std::int64_t> prefill;
  std::vector<std::int64_t> decode;
  std::vector<std::int64_t> batch;
  std::int64_t prefill_step = 512;
  std::string only;  // empty: both
  bool quick = false;
  bool json = false;
};

// What is measured, and whether somebody typed it: what cannot be measured is then an error, while
// defaults are left out with a note.
struct Cases {
  std::vector<std::int64_t> prefill;
  std::vector<DecodeShape> decode;
  bool prefill_typed = false;
  bool decode_typed = false;
};

struct Defaults {
  std::vector<std::int64_t> prefill;
  std::vector<std::int64_t> decode;
  std::vector<std::int64_t> batch;
  BenchRunner::Options run;
  ops::CeilingProbe::Options ceiling;
};

Defaults defaults_of(bool quick) {
  if (quick) {
    return {.prefill = {512},
            .decode = {0, 4096},
            .batch = {1, 4},
            .run = {.seconds = 0.5, .runs_max = 1, .steps_max = 8},
            .ceiling = {.read_bytes = std::size_t{128} << 20, .seconds = 0.02}};
  }
  return {.prefill = {512, 2048, 8192, 32768},
          .decode = {0, 4096, 32768},
          .batch = {1, 4, 16},
          .run = {},
          .ceiling = {}};
}

const std::vector<std::int64_t>& typed_or(const std::vector<std::int64_t>& typed,
                                          const std::vector<std::int64_t>& usual) {
  return typed.empty() ? usual : typed;
}

Cases list_cases(const BenchOptions& options, const Defaults& defaults) {
  Cases cases{.prefill = {},
              .decode = {},
              .prefill_typed = !options.prefill.empty(),
              .decode_typed = !options.decode.empty() || !options.batch.empty()};
  if (options.only != "decode") {
    cases.prefill = typed_or(options.prefill, defaults.prefill);
  }
  if (options.only != "prefill") {
    for (const std::int64_t context : typed_or(options.decode, defaults.decode)) {
      for (const std::int64_t batch : typed_or(options.batch, defaults.batch)) {
        cases.decode.push_back({.context = context, .batch = batch});
      }
    }
  }
  return cases;
}

std::string name_of(const DecodeShape& shape) {
  return fmt::format("--decode {} with --batch {}", shape.context, shape.batch);
}

Result<void> check_combination(const BenchOptions& options) {
  if (options.shape && !options.runtime.model.empty()) {
    return fail(ErrorCode::invalid_argument,
                fmt::format("--shape {} and the directory {}: want one of them", *options.shape,
                            options.runtime.model));
  }
  if (options.layers != 0 && !options.runtime.model.empty()) {
    return fail(ErrorCode::invalid_argument,
                fmt::format("--layers {} cuts a --shape, not the model in {}", options.layers,
                            options.runtime.model));
  }
  return {};
}

Result<ModelConfig> config_of(const BenchOptions& options) {
  if (!options.runtime.model.empty()) {
    return load_model_config(options.runtime.model);
  }
  const std::string shape = options.shape.value_or(kDefaultShape);
  Result<ModelConfig> config = released_config(shape, options.layers);
  if (!config) {
    const bool known = released_config(shape, 0).has_value();
    config.error().message =
        fmt::format("{}: {}", known ? "--layers" : "--shape", config.error().message);
  }
  return config;
}

// Why `bytes` more would not fit into memory now; empty when they do.
std::optional<std::string> lack_of_memory(std::size_t bytes) {
  const std::optional<std::size_t> available = available_memory();
  if (!available || static_cast<double>(bytes) <= kMemoryShare * static_cast<double>(*available)) {
    return std::nullopt;
  }
  return fmt::format("takes {}, {} are available", format_bytes(bytes), format_bytes(*available));
}

// The weights of a large shape are not begun to be made when there is no room for them.
Result<void> check_weights_fit(const BenchOptions& options, const ModelConfig& config) {
  const WeightPreset preset = options.runtime.preset.value_or(WeightPreset::bf16);
  std::int64_t bytes = weight_bytes(config, preset).text;
  // The embedding is read where it lies. A tied bf16 head is its only copy in the sum.
  if (!config.tie_word_embeddings || has_integer_weights(preset)) {
    bytes -= config.vocab_size * config.hidden_size * static_cast<std::int64_t>(sizeof(bf16_t));
  }
  const auto lack = lack_of_memory(static_cast<std::size_t>(bytes));
  if (!lack) {
    return {};
  }
  return fail(
      ErrorCode::resource_exhausted,
      options.runtime.model.empty()
          ? fmt::format("--shape {} with {} layers {}: cut it with --layers",
                        options.shape.value_or(kDefaultShape), config.num_hidden_layers, *lack)
          : fmt::format("{} {}", options.runtime.model, *lack));
}

// Moves the cases longer than the model's context to `skipped`, or returns an Error if they were
// asked for.
Result<void> drop_long_cases(Cases& cases, const ModelConfig& config, std::int64_t steps,
                             std::vector<SkippedCase>& skipped) {
  const std::int64_t limit = config.max_position_embeddings;
  const std::string reason =
      fmt::format("the model was made for at most {} tokens (max_position_embeddings)", limit);
  const auto refuse = [&](const std::string& what) {
    return fail(ErrorCode::invalid_argument, fmt::format("{}: {}", what, reason));
  };
  for (const std::int64_t tokens : cases.prefill) {
    if (tokens > limit && cases.prefill_typed) {
      return refuse(fmt::format("--prefill {}", tokens));
    }
    if (tokens > limit) {
      skipped.push_back({fmt::format("--prefill {}", tokens), reason});
    }
  }
  for (const DecodeShape& shape : cases.decode) {
    if (shape.context + steps > limit && cases.decode_typed) {
      return refuse(fmt::format("{} and {} steps", name_of(shape), steps));
    }
    if (shape.context + steps > limit) {
      skipped.push_back({name_of(shape), reason});
    }
  }
  std::erase_if(cases.prefill, [&](std::int64_t tokens) { return tokens > limit; });
  std::erase_if(cases.decode,
                [&](const DecodeShape& shape) { return shape.context + steps > limit; });
  return {};
}

// True when the case fits into memory. Otherwise it is noted in `skipped`, or an Error if it was
// asked for.
Result<bool> fits(const std::string& what, std::size_t bytes, bool typed,
                  std::vector<SkippedCase>& skipped) {
  const auto lack = lack_of_memory(bytes);
  if (!lack) {
    return true;
  }
  if (typed) {
    return fail(ErrorCode::resource_exhausted, fmt::format("{} {}", what, *lack));
  }
  skipped.push_back({what, *lack});
  return false;
}

BenchReport describe(const BenchOptions& options, LoadedModel& loaded,
                     const ops::CeilingProbe& probe) {
  const Qwen3_5& model = loaded.model();
  const ModelConfig& config = model.config();
  BenchReport report;
  report.version = version();
  report.cpu = detect_cpu_features().vendor_model;
  report.kernels = loaded.table().name;
  report.threads = loaded.pool().size();
  report.model = options.runtime.model.empty()
                     ? options.shape.value_or(kDefaultShape) + ", random weights"
                     : options.runtime.model;
  report.layers = config.num_hidden_layers;
  report.weights = to_string(*model.options().preset);
  report.weight_bytes = model.weight_bytes();
  report.embedding_bytes =
      static_cast<std::size_t>(config.vocab_size * config.hidden_size) * sizeof(bf16_t);
  report.workspace_bytes = model.workspace_bytes();
  report.kv_bytes_per_token = kv_bytes_per_token(config);
  report.state_bytes_per_sequence = model.cache_layout().state_slot_bytes;
  report.product_loop = probe.loops().product.name;
  report.read_bytes = probe.read_bytes();
  return report;
}

Result<void> measure(const Cases& cases, const BenchOptions& options, BenchRunner& runner,
                     const Qwen3_5& model, BenchReport& report) {
  const bool shows = !options.runtime.quiet;
  const WeightReads weights{.bytes = model.weight_bytes(), .preset = *model.options().preset};
  for (const std::int64_t tokens : cases.prefill) {
    const std::string what = fmt::format("--prefill {}", tokens);
    if (!SLUICE_TRY(
            fits(what, runner.prefill_bytes(tokens), cases.prefill_typed, report.skipped))) {
      continue;
    }
    ProgressBar bar(fmt::format("prefill of {}", tokens), "tokens", shows);
    const BenchRuns runs =
        SLUICE_TRY(runner.prefill(tokens, [&](std::int64_t done, std::int64_t total) {
          bar.update(static_cast<std::size_t>(done), static_cast<std::size_t>(total));
        }));
    const StepCost cost =
        prefill_cost(model.config(), weights,
                     {.tokens = tokens, .step_tokens = model.options().step_tokens_max});
    report.prefill.push_back({.tokens = tokens, .rate = bench_rate(runs, tokens, cost)});
  }
  for (const DecodeShape& shape : cases.decode) {
    if (!SLUICE_TRY(
            fits(name_of(shape), runner.decode_bytes(shape), cases.decode_typed, report.skipped))) {
      continue;
    }
    ProgressBar bar(fmt::format("decode at {}, batch {}", shape.context, shape.batch), "steps",
                    shows);
    const BenchRuns runs =
        SLUICE_TRY(runner.decode(shape, [&](std::int64_t done, std::int64_t total) {
          bar.update(static_cast<std::size_t>(done), static_cast<std::size_t>(total));
        }));
    const StepCost cost = decode_cost(model.config(), weights, shape);
    report.decode.push_back({.context = shape.context,
                             .batch = shape.batch,
                             .rate = bench_rate(runs, shape.batch, cost)});
  }
  return {};
}

Result<int> run_bench(const BenchOptions& options) {
  SLUICE_TRY(check_combination(options));
  const ModelConfig config = SLUICE_TRY(config_of(options));
  const Defaults defaults = defaults_of(options.quick);
  Cases cases = list_cases(options, defaults);
  std::vector<SkippedCase> skipped;
  SLUICE_TRY(drop_long_cases(cases, config, BenchRunner::steps_of(defaults.run), skipped));
  SLUICE_TRY(check_weights_fit(options, config));

  std::int64_t batch_max = 1;
  for (const DecodeShape& shape : cases.decode) {
    batch_max = std::max(batch_max, shape.batch);
  }
  const ModelOptions model_options{.step_tokens_max = std::max(options.prefill_step, batch_max),
                                   .step_logit_rows_max = batch_max};
  const std::unique_ptr<LoadedModel> loaded = SLUICE_TRY(
      options.runtime.model.empty()
          ? LoadedModel::load_random(options.shape.value_or(kDefaultShape), config, options.runtime,
                                     model_options)
          : LoadedModel::load(options.runtime.model, config, options.runtime, model_options));
  const SteadyClock clock;
  ops::CeilingProbe probe = SLUICE_TRY(
      ops::CeilingProbe::create(kernels::peak_loops(loaded->table(), detect_cpu_features()),
                                loaded->pool(), clock, defaults.ceiling));
  BenchReport report = describe(options, *loaded, probe);
  report.skipped = std::move(skipped);
  BenchRunner runner(loaded->model(), probe, loaded->pool(), clock, defaults.run);
  (void)probe.sample();
  SLUICE_TRY(measure(cases, options, runner, loaded->model(), report));
  report.ceiling_best = probe.best();
  report.ceiling_median = probe.median();
  report.peak_resident_bytes = peak_resident_bytes();
  fmt::print("{}{}", options.json ? to_json(report) : to_text(report), options.json ? "\n" : "");
  return kExitSuccess;
}

void add_list(CLI::App& command, const std::string& name, std::vector<std::int64_t>& values,
              const std::string& what, Limits<std::int64_t> limits) {
  check_integer(*command.add_option(name, values, what)->type_name("N"), limits);
}

}  // namespace

void add_bench_command(CLI::App& program, Action& action) {
  auto options = std::make_shared<BenchOptions>();
  CLI::App* command = program.add_subcommand(
      "bench", "Prefill and decode rates beside the most this machine allows");
  add_runtime_options(*command, options->runtime, false);
  command->get_option("MODEL")->description(
      "Directory of the model; without it random weights of --shape");
  command
      ->add_option("--shape", options->shape,
                   fmt::format("Random weights of a released size, made in memory: {} (without "
                               "MODEL: {})",
                               released_names(), kDefaultShape))
      ->type_name("NAME");
  check_integer(
      *command->add_option("--layers", options->layers, "Only the first N layers of the shape")
           ->type_name("N"),
      {1, kLayersMax});
  add_list(*command, "--prefill", options->prefill, "Prompt lengths (512 2048 8192 32768)",
           {1, kPromptTokensMax});
  add_list(*command, "--decode", options->decode, "Tokens before the decoded ones (0 4096 32768)",
           {0, kPromptTokensMax});
  add_list(*command, "--batch", options->batch, "Sequences decoded together (1 4 16)",
           {1, kSequencesMax});
  command->add_option("--only", options->only, "prefill or decode instead of both")
      ->check(CLI::IsMember({"prefill", "decode"}));
  check_integer(
      *command
           ->add_option("--prefill-step", options->prefill_step, "Prompt tokens computed in one go")
           ->type_name("N")
           ->capture_default_str(),
      {1, kStepTokensMax});
  command->add_flag("--quick", options->quick,
                    "One short run of few cases: does it work, and about how fast?");
  command->add_flag("--json", options->json, "The report as one JSON object");
  const auto url_options = add_bench_url_options(*command);
  command->callback([options, url_options, &action] {
    action = [options, url_options] {
      return url_options->url.empty()
                 ? run_bench(*options)
                 : run_bench_url(*url_options, options->json, options->runtime.quiet);
    };
  });
}

}  // namespace sluice::apps
