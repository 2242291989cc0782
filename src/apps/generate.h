// `sluice generate`: one prompt, one answer, on stdout: as text while it comes, or as one JSON
// object.
#pragma once

#include "apps/options.h"

namespace sluice::apps {

void add_generate_command(CLI::App& program, Action& action);

}  // namespace sluice::apps
