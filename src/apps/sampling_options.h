// The sampling options of a command line, and what they mean together with the model's own
// defaults (generation_config.json).
#pragma once

#include "api/fields/generation_fields.h"
#include "base/result.h"
#include "request/request.h"
#include "text/generation_config.h"

namespace CLI {
class App;
}

namespace sluice::apps {

// Where values that were not given come from.
enum class SamplingDefaults { greedy, model };

struct SamplingOptions {
  SamplingFields given;
  SamplingDefaults defaults = SamplingDefaults::greedy;
};

// Adds --temperature, --top-k, ... Ranges are checked while parsing.
void add_sampling_options(CLI::App& command, SamplingOptions& options);

// One value each: given, else the default of the chosen kind; without a seed a random one. Error
// invalid_argument when a filter (top-k, top-p, min-p) was given but the result would be greedy
// without anyone having asked for temperature 0: the filter would silently do nothing.
Result<SamplingParams> resolve_sampling(const SamplingOptions& options,
                                        const GenerationConfig& model);

}  // namespace sluice::apps
