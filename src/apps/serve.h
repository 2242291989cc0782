// `sluice serve`: the HTTP server over one model, until SIGINT or SIGTERM.
#pragma once

#include "apps/options.h"

namespace sluice::apps {

void add_serve_command(CLI::App& program, Action& action);

}  // namespace sluice::apps
