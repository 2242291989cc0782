#include "apps/sampling_options.h"

#include <CLI/CLI.hpp>
#include <limits>
#include <map>
#include <random>

#include "apps/options.h"

namespace sluice::apps {
namespace {

std::uint64_t random_seed() {
  std::random_device device;
  return (std::uint64_t{device()} << 32) | device();
}

// The value given, else the model's, else `off`.
template <typename Given, typename Model, typename Value>
Value choose(const std::optional<Given>& given, const std::optional<Model>& model, Value off) {
  if (given) {
    return static_cast<Value>(*given);
  }
  return model ? static_cast<Value>(*model) : off;
}

}  // namespace

void add_sampling_options(CLI::App& command, SamplingOptions& options) {
  const std::string group = "Sampling";
  const auto number = [&](const char* name, std::optional<double>& value, Limits<double> limits,
                          const char* help) {
    check_number(*command.add_option(name, value, help)->type_name("X")->group(group), limits);
  };
  number("--temperature", options.temperature, {0.0, 2.0}, "0 is greedy; 0 to 2");
  check_integer(*command.add_option("--top-k", options.top_k, "Keep the K best tokens; 0 is off")
                     ->type_name("K")
                     ->group(group),
                {0, std::numeric_limits<std::int32_t>::max()});
  number("--top-p", options.top_p, {0.0, 1.0}, "Keep the best tokens of this total probability");
  number("--min-p", options.min_p, {0.0, 1.0}, "Keep tokens of at least this share of the best");
  number("--presence-penalty", options.presence_penalty, {-2.0, 2.0}, "-2 to 2");
  number("--frequency-penalty", options.frequency_penalty, {-2.0, 2.0}, "-2 to 2");
  // The smallest positive float: 0 itself is out of range.
  number("--repetition-penalty", options.repetition_penalty,
         {static_cast<double>(std::numeric_limits<float>::min()), 2.0}, "Above 0 to 2; 1 is off");
  check_integer(*command.add_option("--seed", options.seed, "Same seed, same answer; else random")
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
  GenerationConfig defaults;  // all off: greedy
  if (options.defaults == SamplingDefaults::model && model.do_sample) {
    defaults = model;
    defaults.temperature = model.temperature.value_or(1.0F);
  }
  SamplingParams params;
  params.temperature = choose(options.temperature, defaults.temperature, 0.0F);
  params.top_k = choose(options.top_k, defaults.top_k, 0);
  params.top_p = choose(options.top_p, defaults.top_p, 1.0F);
  params.min_p = choose(options.min_p, defaults.min_p, 0.0F);
  params.presence_penalty = choose(options.presence_penalty, defaults.presence_penalty, 0.0F);
  params.frequency_penalty = choose(options.frequency_penalty, std::optional<float>(), 0.0F);
  params.repetition_penalty = choose(options.repetition_penalty, defaults.repetition_penalty, 1.0F);
  params.seed = options.seed ? *options.seed : random_seed();

  const bool filtered = options.top_k || options.top_p || options.min_p;
  if (filtered && !options.temperature && params.temperature == 0.0F) {
    return fail(ErrorCode::invalid_argument,
                "--top-k, --top-p and --min-p do nothing at temperature 0: give --temperature, or "
                "--sampling-defaults model");
  }
  return params;
}

}  // namespace sluice::apps
