#include "apps/validate.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>
#include <memory>
#include <string>

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
  bool only_exactness = false;
  bool json = false;
};

void print_report(const ExactnessReport& report, double seconds) {
  fmt::print("exactness: {} answers compared with the same request alone, {} tokens, {:.1f} s\n",
             report.compared, report.tokens, seconds);
  fmt::print("  cancelled {}, most sequences at once {}, preemptions {}, evictions {}\n",
             report.cancelled, report.running_max, report.preemptions, report.evictions);
  fmt::print("  prompt tokens {}, reused {}\n", report.prompt_tokens, report.reused_tokens);
  for (const std::string& difference : report.differences) {
    fmt::print("  DIFFERENT: {}\n", difference);
  }
  fmt::print("{}: {} of {} answers differ\n", report.difference_count == 0 ? "pass" : "FAIL",
             report.difference_count, report.compared);
}

void print_json(const ExactnessReport& report, double seconds) {
  json::array differences;
  for (const std::string& difference : report.differences) {
    differences.emplace_back(difference);
  }
  const json::object object{{"pass", report.difference_count == 0},
                            {"exactness",
                             {{"compared", report.compared},
                              {"differences", report.difference_count},
                              {"examples", std::move(differences)},
                              {"cancelled", report.cancelled},
                              {"tokens", report.tokens},
                              {"prompt_tokens", report.prompt_tokens},
                              {"reused_tokens", report.reused_tokens},
                              {"preemptions", report.preemptions},
                              {"evictions", report.evictions},
                              {"running_max", report.running_max},
                              {"seconds", seconds}}}};
  fmt::print("{}\n", json::serialize(object));
}

Result<int> run_validate(const ValidateOptions& options) {
  const std::filesystem::path directory = options.runtime.model.empty()
                                              ? SLUICE_TRY(find_embedded_model())
                                              : std::filesystem::path(options.runtime.model);
  const ModelConfig config = SLUICE_TRY(load_model_config(directory));
  const std::unique_ptr<LoadedModel> loaded = SLUICE_TRY(LoadedModel::load(
      directory, config, options.runtime,
      {.step_tokens_max = kStepTokens, .step_logit_rows_max = kExactnessSequencesMax}));
  ExactnessOptions exactness = options.exactness;
  exactness.memory_max = static_cast<std::size_t>(options.memory_mib) << 20;
  const SteadyClock clock;
  const Clock::TimePoint begin = clock.now();
  ExactnessReport report;
  {
    ProgressBar bar("comparing", "answers", !options.runtime.quiet);
    const auto total = static_cast<std::size_t>(exactness.rounds * exactness.requests);
    report = SLUICE_TRY(check_exactness(loaded->model(), exactness, [&](std::int64_t compared) {
      bar.update(static_cast<std::size_t>(compared), total);
    }));
  }
  const double seconds = seconds_between(begin, clock.now());
  options.json ? print_json(report, seconds) : print_report(report, seconds);
  return report.difference_count == 0 ? kExitSuccess : kExitError;
}

}  // namespace

void add_validate_command(CLI::App& program, Action& action) {
  auto options = std::make_shared<ValidateOptions>();
  CLI::App* command = program.add_subcommand(
      "validate", "Check that answers are the same whatever else the engine does");
  add_runtime_options(*command, options->runtime, false);
  command->add_flag("--exactness", options->only_exactness,
                    "Answers of random, mixed, cancelled, preempted and cached requests against "
                    "the same requests alone, bit for bit; so far this is all that is checked");
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
