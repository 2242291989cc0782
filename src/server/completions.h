// POST /v1/completions.
#pragma once

#include "server/backend.h"

namespace sluice {

void handle_completions(const Backend& backend, const std::shared_ptr<Exchange>& exchange);

}  // namespace sluice
