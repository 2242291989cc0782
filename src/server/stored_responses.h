// GET and DELETE /v1/responses/{id}, GET /v1/responses/{id}/input_items, POST
// /v1/responses/{id}/cancel: what the store has of finished responses, and which still run.
#pragma once

#include "server/backend.h"

namespace sluice {

void handle_get_response(const Backend& backend, const std::shared_ptr<Exchange>& exchange);
void handle_delete_response(const Backend& backend, const std::shared_ptr<Exchange>& exchange);

// Responses do not run in the background: one that can be found has ended, and is told as it is.
void handle_cancel_response(const Backend& backend, const std::shared_ptr<Exchange>& exchange);

}  // namespace sluice
