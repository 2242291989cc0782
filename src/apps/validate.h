// `sluice validate`: is this build right on this machine with this model?
#pragma once

#include "apps/options.h"

namespace sluice::apps {

void add_validate_command(CLI::App& program, Action& action);

}  // namespace sluice::apps
