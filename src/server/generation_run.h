// One request while it is generated: submits its sequences, turns their tokens into deltas, and
// sends them as a stream or as one reply.
//
//   engine thread --on_ready--> strand of the connection: pump() -> parser -> format -> exchange
//
// A client that does not read stops the pump, not the engine: events wait in the engine's queue,
// which holds at most the request's own tokens. A client that is gone cancels the request.
// Thread rule: the strand of the exchange; only the wake-up comes from the engine thread.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "server/backend.h"
#include "server/generation_plan.h"

namespace sluice {

// Replies to the exchange in any case: at once with an error if the engine refuses.
void start_generation(const Backend& backend, const std::shared_ptr<Exchange>& exchange,
                      GenerationPlan plan);

// The value of x-ignored-params: the paths, joined by commas, at most 1 KiB of printable ASCII.
std::string ignored_header(const std::vector<std::string>& paths);

// Adds that header, if anything was ignored.
void add_ignored(const std::vector<std::string>& paths, HttpResponse& response);

}  // namespace sluice
