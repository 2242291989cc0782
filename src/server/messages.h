// POST /v1/messages and POST /v1/messages/count_tokens: the Anthropic dialect.
#pragma once

#include "server/backend.h"

namespace sluice {

void handle_messages(const Backend& backend, const std::shared_ptr<Exchange>& exchange);

// Counts what handle_messages() would compute, without the engine: also while the model loads.
void handle_count_tokens(const Backend& backend, const std::shared_ptr<Exchange>& exchange);

}  // namespace sluice
