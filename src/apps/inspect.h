// `sluice inspect`: what a model directory holds and what running it would take, without loading
// the weights.
#pragma once

#include "apps/options.h"

namespace sluice::apps {

void add_inspect_command(CLI::App& program, Action& action);

}  // namespace sluice::apps
