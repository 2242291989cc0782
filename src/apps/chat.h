// `sluice chat`: a conversation in the terminal. History is kept; /reset forgets it, /exit or the
// end of input leaves; Ctrl-C stops an answer.
#pragma once

#include "apps/options.h"

namespace sluice::apps {

void add_chat_command(CLI::App& program, Action& action);

}  // namespace sluice::apps
