#include "apps/sampling_options.h"

#include <CLI/CLI.hpp>
#include <limits>
#include <map>

#include "apps/options.h"

namespace sluice::apps {
void add_sampling_options(CLI::App& command, SamplingOptions& options) {
  const std::string group = "Sampling";
  const auto number = [&](const char* name, std::optional<float>& value, Limits<double> limits,
                          const char* help) {
    check_number(*command.add_option(name, value, help)->type_name("X")->group(group), limits);
  };
  number("--temperature", options.given.temperature, {0.0, 2.0}, "0 is greedy; 0 to 2");
  check_integer(
      *command.add_option("--top-k", options.given.top_k, "Keep the K best tokens; 0 is off")
           ->type_name("K")
           ->group(group),
      {0, std::numeric_limits<std::int32_t>::max()});
  number("--top-p", options.given.top_p, {0.0, 1.0},
         "Keep the best tokens of this total probability");
  number("--min-p", options.given.min_p, {0.0, 1.0},
         "Keep tokens of at least this share of the best");
  number("--presence-penalty", options.given.presence_penalty, {-2.0, 2.0}, "-2 to 2");
  number("--frequency-penalty", options.given.frequency_penalty, {-2.0, 2.0}, "-2 to 2");
  // The smallest positive float: 0 itself is out of range.
  number("--repetition-penalty", options.given.repetition_penalty,
         {static_cast<double>(std::numeric_limits<float>::min()), 2.0}, "Above 0 to 2; 1 is off");
  check_integer(
      *command.add_option("--seed", options.given.seed, "Same seed, same answer; else random")
           ->type_name("N")
           ->group(group),
      {0, std::numeric_limits<std::int64_t>::max()});
  command
      .add_option("--sampling-defaults", options.defaults,
                  "Values that are not given: greedy, or model (generation_config.json)")
      ->transform(CLI::CheckedTransformer(
                      std::map<std::string, SamplingDefaults>{{"greedy", SamplingDefaults::greedy},
                                                              {"model", SamplingDefaults::model}})
                      .description(""))
      ->type_name("greedy|model")
      ->group(group);
}

Result<SamplingParams> resolve_sampling(const SamplingOptions& options,
                                        const GenerationConfig& model) {
  const bool greedy = options.defaults == SamplingDefaults::greedy;
  SamplingParams params =
      sluice::resolve_sampling(options.given, greedy ? GenerationConfig{} : model, random_seed());

  const bool filtered = options.given.top_k || options.given.top_p || options.given.min_p;
  if (filtered && !options.given.temperature && params.temperature == 0.0F) {
    return fail(ErrorCode::invalid_argument,
                "--top-k, --top-p and --min-p do nothing at temperature 0: give --temperature, or "
                "--sampling-defaults model");
  }
  return params;
}

}  // namespace sluice::apps
