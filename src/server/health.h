// GET /live, /health, /ready, /ping and /version.
#pragma once

#include "server/backend.h"

namespace sluice {

void handle_live(const Backend& backend, const std::shared_ptr<Exchange>& exchange);

// 200 once a forward pass succeeded, 503 while loading, draining, or when the first one failed.
void handle_ready(const Backend& backend, const std::shared_ptr<Exchange>& exchange);

void handle_version(const Backend& backend, const std::shared_ptr<Exchange>& exchange);

}  // namespace sluice
