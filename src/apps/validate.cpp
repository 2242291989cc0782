#include "apps/validate.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <ctime>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "apps/console.h"
#include "apps/embedded_model.h"
#include "apps/model_loader.h"
#include "apps/progress_bar.h"
#include "apps/validate_options.h"
#include "apps/validate_reference.h"
#include "apps/validate_server.h"
#include "apps/version.h"
#include "base/checked_math.h"
#include "base/clock.h"
#include "kernels/kernel_table.h"
#include "kernels/select.h"
#include "platform/atomic_file.h"
#include "platform/memory_use.h"
#include "validate/artifact_check.h"
#include "validate/check_list.h"
#include "validate/engine_checks.h"
#include "validate/golden_check.h"
#include "validate/kernel_checks.h"
#include "validate/report_formats.h"

namespace sluice::apps {
namespace {

using validate::Check;
using validate::CheckRun;
using validate::Report;

constexpr std::int64_t kStepTokens = 256;  // rows of one forward pass at most
constexpr std::int64_t kPlanTokens = 32768;
constexpr std::int64_t kCutTokens = 200;  // three blocks and a rest
const std::vector<std::string_view> kModelChecks{"isa",   "cuts",   "batch",
                                                 "reset", "golden", "reference"};

std::vector<validate::Fact> machine_facts(const RuntimeOptions& options) {
  const CpuFeatures cpu = detect_cpu_features();
  std::string supported;
  for (const kernels::KernelTable* table : kernels::supported_tables(cpu)) {
    supported += fmt::format("{}{}", supported.empty() ? "" : ", ", table->name);
  }
  const int threads = options.threads == 0 ? available_cpus() : static_cast<int>(options.threads);
  std::vector<validate::Fact> facts{
      {"CPU", cpu.vendor_model}, {"kernels", supported}, {"threads", std::to_string(threads)}};
  if (const std::optional<std::size_t> memory = available_memory()) {
    facts.push_back({"free memory", format_bytes(*memory)});
  }
  return facts;
}

void add_model_facts(LoadedModel& loaded, const ModelConfig& config, Report& report) {
  const auto linear = std::ranges::count(config.layer_types, LayerType::linear_attention);
  report.model.insert(
      report.model.end(),
      {{"type", config.model_type},
       {"layers", fmt::format("{}, of which {} linear", config.num_hidden_layers, linear)},
       {"hidden, vocabulary", fmt::format("{}, {}", config.hidden_size, config.vocab_size)},
       {"context", fmt::format("{} tokens", config.max_position_embeddings)},
       {"weights", fmt::format("{}, {}", to_string(loaded.preset()),
                               format_bytes(loaded.model().weight_bytes()))},
       {"kernels used", std::string(loaded.table().name)}});
}

// What the model holds, and what one sequence of `tokens` takes beside it.
validate::StackedBar memory_plan(const Qwen3_5& model, std::int64_t tokens) {
  const CacheLayout& layout = model.cache_layout();
  const std::int64_t blocks = ceil_div(tokens, kKvBlockTokens);
  return {
      .title = fmt::format("The model and one sequence of {} tokens", tokens),
      .parts = {{"weights", static_cast<double>(model.weight_bytes())},
                {"workspace", static_cast<double>(model.workspace_bytes())},
                {"KV", static_cast<double>(blocks) * static_cast<double>(layout.kv_block_bytes)},
                {"state", static_cast<double>(layout.state_slot_bytes)}}};
}

// Stored answers that come with a model, of its weights in bf16.
std::optional<std::filesystem::path> find_golden(const std::filesystem::path& directory,
                                                 const ValidateOptions& options) {
  if (!options.golden.empty()) {
    return options.golden;
  }
  std::error_code ignored;
  const std::filesystem::path path = directory / validate::kGoldenFile;
  const bool is_bf16 = options.runtime.preset.value_or(WeightPreset::bf16) == WeightPreset::bf16;
  return is_bf16 && std::filesystem::exists(path, ignored) ? std::optional(path) : std::nullopt;
}

// The checks that compute with the model in this process.
void check_model(CheckRun& run, LoadedModel& loaded, const ValidateOptions& options,
                 const std::optional<validate::Golden>& golden,
                 const std::optional<ReferencePlan>& reference) {
  const std::uint64_t seed = options.exactness.seed;
  run.run("isa", [&](Check& check) {
    return validate::check_isa({.model = loaded.model(),
                                .checkpoint = loaded.checkpoint(),
                                .table = loaded.table(),
                                .pool = loaded.pool()},
                               seed, check);
  });
  run.run("cuts", [&](Check& check) {
    return validate::check_cuts(loaded.model(), kCutTokens, seed, check);
  });
  run.run("batch", [&](Check& check) {
    ProgressBar bar("comparing", "answers", !options.runtime.quiet);
    const ExactnessOptions& exactness = options.exactness;
    const auto total = static_cast<std::size_t>(exactness.rounds * exactness.requests);
    return validate::check_batch(
        loaded.model(), exactness,
        [&](std::int64_t compared) { bar.update(static_cast<std::size_t>(compared), total); },
        check);
  });
  run.run("reset", [&](Check& check) {
    return validate::check_reset(loaded.model(), options.long_tokens, seed, check);
  });
  run.run("golden", [&](Check& check) -> Result<void> {
    if (!golden) {
      check.skip(
          fmt::format("no --golden FILE, and no {} for these weights", validate::kGoldenFile));
      return {};
    }
    return validate::check_golden(loaded.model(), *golden, check);
  });
  run.run("reference", [&](Check& check) -> Result<void> {
    if (!reference) {
      check.skip("no --reference DIR");
      return {};
    }
    return run_reference_check(*reference, loaded, options.runtime.quiet, check);
  });
}

// The model is opened, checked and gone again when this returns. Errors: it cannot be opened, and
// no check was there to say so.
Result<void> run_local_checks(CheckRun& run, const std::filesystem::path& directory,
                              const ValidateOptions& options) {
  run.run("artifact", [&](Check& check) {
    const int threads =
        options.runtime.threads == 0 ? available_cpus() : static_cast<int>(options.runtime.threads);
    ThreadPool pool(threads);
    return validate::check_artifact(directory, pool, check);
  });
  if (run.report().count(validate::Outcome::fail) > 0) {
    for (const std::string_view id : kModelChecks) {
      run.skip(id, "the model files are broken");
    }
    return {};
  }
  if (!run.wants_any(kModelChecks)) {
    return {};
  }
  const ModelConfig config = SLUICE_TRY(load_model_config(directory));
  SLUICE_TRY(check_context(options.long_tokens, config));
  std::optional<validate::Golden> golden;
  if (const auto path = find_golden(directory, options)) {
    golden = SLUICE_TRY(validate::load_golden(*path, config));
  }
  const std::optional<ReferencePlan> reference =
      SLUICE_TRY(plan_reference(options, directory, config));
  const std::unique_ptr<LoadedModel> loaded = SLUICE_TRY(LoadedModel::load(
      directory, config, options.runtime,
      {.step_tokens_max = kStepTokens, .step_logit_rows_max = kExactnessSequencesMax}));
  add_model_facts(*loaded, config, run.report());
  run.report().bars.push_back(
      memory_plan(loaded->model(), std::min(kPlanTokens, config.max_position_embeddings)));
  check_model(run, *loaded, options, golden, reference);
  return {};
}

// The files to write, made before anything is checked: a wrong path is not found at the end of an
// hour.
struct Outputs {
  std::unique_ptr<AtomicFile> json;  // null: none, or stdout
  std::unique_ptr<AtomicFile> html;
};

Result<Outputs> open_outputs(const ValidateOptions& options) {
  Outputs outputs;
  if (!options.json.empty() && options.json != "-") {
    outputs.json = SLUICE_TRY(AtomicFile::create(options.json));
  }
  if (!options.html.empty()) {
    outputs.html = SLUICE_TRY(AtomicFile::create(options.html));
  }
  return outputs;
}

Result<void> write_file(AtomicFile* file, const std::string& text) {
  if (file == nullptr) {
    return {};
  }
  SLUICE_TRY(file->write(std::as_bytes(std::span(text))));
  return file->commit();
}

Result<void> write_reports(const Report& report, const ValidateOptions& options,
                           const Outputs& outputs) {
  if (options.json == "-") {
    fmt::print("{}\n", validate::to_json(report));
  }
  SLUICE_TRY(write_file(outputs.json.get(), validate::to_json(report) + "\n"));
  return write_file(outputs.html.get(), validate::to_html(report));
}

int print_list() {
  for (const validate::CheckInfo& info : validate::all_checks()) {
    fmt::print("{:<9} {:<6} {}: {}\n", info.id, info.needs_server ? "server" : "model", info.title,
               info.proves);
  }
  return kExitSuccess;
}

Result<int> run_validate(const ValidateOptions& given) {
  ValidateOptions options = given;
  if (options.list) {
    return print_list();
  }
  apply_defaults(options);
  std::vector<std::string> chosen = SLUICE_TRY(validate::choose_checks(options.only, options.skip));
  const Outputs outputs = SLUICE_TRY(open_outputs(options));
  const bool text = options.json != "-";
  const SteadyClock clock;
  Report report{.version = version(),
                .subject = options.url,
                .begun = fmt::format("{:%Y-%m-%d %H:%M:%S}", fmt::gmtime(std::time(nullptr))),
                .machine = machine_facts(options.runtime),
                .model = {},
                .checks = {},
                .plots = {},
                .bars = {}};
  CheckRun run(report, std::move(chosen), clock, [text](const Check& check) {
    if (text) {
      fmt::print("{}", validate::to_text(check));
      (void)std::fflush(stdout);
    }
  });
  if (options.url.empty()) {
    const std::filesystem::path directory = options.runtime.model.empty()
                                                ? SLUICE_TRY(find_embedded_model())
                                                : std::filesystem::path(options.runtime.model);
    report.subject = directory.string();
    SLUICE_TRY(run_local_checks(run, directory, options));
    SLUICE_TRY(run_checks_on_child(run, directory, options));
  } else {
    SLUICE_TRY(run_checks_on_url(run, options));
  }
  if (text) {
    fmt::print("{}", validate::verdict_text(report));
  }
  SLUICE_TRY(write_reports(report, options, outputs));
  return report.pass() ? kExitSuccess : kExitError;
}

}  // namespace

void add_validate_command(CLI::App& program, Action& action) {
  auto options = std::make_shared<ValidateOptions>();
  CLI::App* command = program.add_subcommand(
      "validate", "Check files, arithmetic, cache and server of a model; write a report");
  add_validate_options(*command, *options);
  command->callback([options, &action] { action = [options] { return run_validate(*options); }; });
}

}  // namespace sluice::apps
