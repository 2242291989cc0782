// The Responses API: POST /v1/responses, what was stored of it, and the size of a prompt.
#pragma once

#include "server/backend.h"

namespace sluice {

void handle_responses(const Backend& backend, const std::shared_ptr<Exchange>& exchange);

// POST /v1/responses/input_tokens: what the prompt of such a request would take.
void handle_response_input_tokens(const Backend& backend,
                                  const std::shared_ptr<Exchange>& exchange);

}  // namespace sluice
