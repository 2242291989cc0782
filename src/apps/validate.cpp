#include "apps/validate.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>
#include <boost/json/value_from.hpp>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "apps/embedded_model.h"
#include "apps/model_loader.h"
#include "apps/progress_bar.h"
#include "base/clock.h"
#include "engine/exactness.h"

namespace sluice::apps {
namespace {

namespace json = boost::json;

constexpr std::int64_t kStepTokens = 256;  // rows of one forward pass at most

struct ValidateOptions {
  RuntimeOptions runtime;
  ExactnessOptions exactness;
  std::int64_t memory_mib = 2048;
  std::int64_t long_tokens = 4096;
  bool only_exactness = false;  // not the state reset
  bool json = false;
};

// What the checks found. pass: of all that were made.
struct Findings {
  ExactnessReport exactness;
  double exactness_seconds = 0.0;
  std::optional<std::vector<std::string>> reset_differences;  // none: not checked
  double reset_seconds = 0.0;

  bool pass() const {
    return exactness.difference_count == 0 && (!reset_differences || reset_differences->empty());
  }
};

void print_differences(const std::vector<std::string>& differences) {
  for (const std::string& difference : differences) {
    fmt::print("  DIFFERENT: {}\n", difference);
  }
}

void print_text(const Findings& findings, std::int64_t long_tokens) {
  const ExactnessReport& report = findings.exactness;
  fmt::print("exactness: {} answers compared with the same request alone, {} differ; {:.1f} s\n",
             report.compared, report.difference_count, findings.exactness_seconds);
  fmt::print("  {} tokens generated, {} cancelled, at most {} at once, {} preemptions\n",
             report.tokens, report.cancelled, report.running_max, report.preemptions);
  fmt::print("  {} prompt tokens, {} of them reused, {} evictions\n", report.prompt_tokens,
             report.reused_tokens, report.evictions);
  print_differences(report.differences);
  if (findings.reset_differences) {
    fmt::print("state reset: short and long ({} tokens) in turns, {} of 8 differ; {:.1f} s\n",
               long_tokens, findings.reset_differences->size(), findings.reset_seconds);
    print_differences(*findings.reset_differences);
  }
  fmt::print("{}\n", findings.pass() ? "pass" : "FAIL");
}

void print_json(const Findings& findings, std::int64_t long_tokens) {
  const ExactnessReport& report = findings.exactness;
  json::object object{{"pass", findings.pass()},
                      {"exactness",
                       {{"compared", report.compared},
                        {"differences", report.difference_count},
                        {"examples", json::value_from(report.differences)},
                        {"cancelled", report.cancelled},
                        {"tokens", report.tokens},
                        {"prompt_tokens", report.prompt_tokens},
                        {"reused_tokens", report.reused_tokens},
                        {"preemptions", report.preemptions},
                        {"evictions", report.evictions},
                        {"running_max", report.running_max},
                        {"seconds", findings.exactness_seconds}}}};
  if (findings.reset_differences) {
    object["state_reset"] = {{"long_tokens", long_tokens},
                             {"differences", findings.reset_differences->size()},
                             {"examples", json::value_from(*findings.reset_differences)},
                             {"seconds", findings.reset_seconds}};
  }
  fmt::print("{}\n", json::serialize(object));
}

Result<Findings> run_checks(Qwen3_5& model, const ValidateOptions& options) {
  ExactnessOptions exactness = options.exactness;
  exactness.memory_max = static_cast<std::size_t>(options.memory_mib) << 20;
  const SteadyClock clock;
  Findings findings;
  const Clock::TimePoint begin = clock.now();
  {
    ProgressBar bar("comparing", "answers", !options.runtime.quiet);
    const auto total = static_cast<std::size_t>(exactness.rounds * exactness.requests);
    findings.exactness = SLUICE_TRY(check_exactness(model, exactness, [&](std::int64_t compared) {
      bar.update(static_cast<std::size_t>(compared), total);
    }));
  }
  const Clock::TimePoint between = clock.now();
  findings.exactness_seconds = seconds_between(begin, between);
  if (!options.only_exactness) {
    findings.reset_differences =
        SLUICE_TRY(check_state_reset(model, options.long_tokens, exactness.seed));
    findings.reset_seconds = seconds_between(between, clock.now());
  }
  return findings;
}

Result<int> run_validate(const ValidateOptions& options) {
  const std::filesystem::path directory = options.runtime.model.empty()
                                              ? SLUICE_TRY(find_embedded_model())
                                              : std::filesystem::path(options.runtime.model);
  const ModelConfig config = SLUICE_TRY(load_model_config(directory));
  SLUICE_TRY(check_context(options.long_tokens, config));
  const std::unique_ptr<LoadedModel> loaded = SLUICE_TRY(LoadedModel::load(
      directory, config, options.runtime,
      {.step_tokens_max = kStepTokens, .step_logit_rows_max = kExactnessSequencesMax}));
  const Findings findings = SLUICE_TRY(run_checks(loaded->model(), options));
  options.json ? print_json(findings, options.long_tokens)
               : print_text(findings, options.long_tokens);
  return findings.pass() ? kExitSuccess : kExitError;
}

}  // namespace

void add_validate_command(CLI::App& program, Action& action) {
  auto options = std::make_shared<ValidateOptions>();
  CLI::App* command = program.add_subcommand(
      "validate", "Check that answers are the same whatever else the engine does");
  add_runtime_options(*command, options->runtime, false);
  command->add_flag("--exactness", options->only_exactness,
                    "Only this check: random, mixed, cancelled, preempted and cached requests "
                    "against the same requests alone, bit for bit");
  check_integer(*command
                     ->add_option("--long", options->long_tokens,
                                  "Prompt tokens of the long sequence of the state-reset check")
                     ->type_name("N")
                     ->capture_default_str(),
                {128, kPromptTokensMax});
  check_integer(*command->add_option("--rounds", options->exactness.rounds, "Engines to try")
                     ->type_name("N")
                     ->capture_default_str(),
                {1, 1000000});
  check_integer(
      *command->add_option("--requests", options->exactness.requests, "Requests to each of them")
           ->type_name("N")
           ->capture_default_str(),
      {1, 10000});
  check_integer(*command
                     ->add_option("--prompt-tokens", options->exactness.prompt_tokens_max,
                                  "Tokens of the longest shared beginning of prompts")
                     ->type_name("N")
                     ->capture_default_str(),
                {1, 900});
  check_integer(*command->add_option("--seed", options->exactness.seed, "Of the random programs")
                     ->type_name("N")
                     ->capture_default_str(),
                {0, std::int64_t{1} << 53});
  check_integer(
      *command->add_option("--memory", options->memory_mib, "MiB an engine may plan for sequences")
           ->type_name("N")
           ->capture_default_str(),
      {1, std::int64_t{1} << 24});
  command->add_flag("--json", options->json, "The report as one JSON object");
  command->callback([options, &action] { action = [options] { return run_validate(*options); }; });
}

}  // namespace sluice::apps
