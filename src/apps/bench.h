// `sluice bench`: how fast this machine computes a model of the family, beside how fast it could.
#pragma once

#include "apps/options.h"

namespace sluice::apps {

void add_bench_command(CLI::App& program, Action& action);

}  // namespace sluice::apps
