// `sluice score`: the logits of every position of a token sequence, written to a file. Goes to the
// model directly, without engine and sampler, so that what the model promises (the same bits for
// any --prefill-step and --threads) can be checked from outside.
#pragma once

#include "apps/options.h"

namespace sluice::apps {

void add_score_command(CLI::App& program, Action& action);

}  // namespace sluice::apps
