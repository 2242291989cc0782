// `sluice pack`: a model directory turned into a packed one, which loads by mapping.
#pragma once

#include "apps/options.h"

namespace sluice::apps {

void add_pack_command(CLI::App& program, Action& action);

}  // namespace sluice::apps
