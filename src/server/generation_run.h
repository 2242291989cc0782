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

#include "server/backend.h"
#include "server/generation_plan.h"

namespace sluice {

// Replies to the exchange in any case: at once with an error if there is no plan, or the engine
// refuses it. `dialect`: whose shape the error has then.
void start_generation(const Backend& backend, const std::shared_ptr<Exchange>& exchange,
                      ApiResult<GenerationPlan> plan, ApiDialect dialect = ApiDialect::openai);

}  // namespace sluice
