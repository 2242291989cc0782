// One request from submission to its end, on the main thread, stoppable by Ctrl-C.
#pragma once

#include <functional>

#include "apps/signal_watch.h"
#include "base/result.h"
#include "engine/engine.h"
#include "request/request.h"

namespace sluice::apps {

struct GenerationEnd {
  GenerationFinished finished;
  bool interrupted = false;  // a signal cancelled it
};

// Called for each token as it comes; false ends the generation (a stop text was found).
using OnToken = std::function<bool(const TokenEvent&)>;

// Errors: what submit() refuses. An error of the running generation is in `finished`. The watch
// must outlive the engine (its thread wakes it).
Result<GenerationEnd> run_generation(Engine& engine, Request request, SignalWatch& watch,
                                     const OnToken& on_token);

}  // namespace sluice::apps
