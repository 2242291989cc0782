// GET /metrics: everything that is counted, for Prometheus. docs/METRICS.md lists it.
#pragma once

#include <memory>

#include "server/backend.h"

namespace sluice {

void handle_metrics(const Backend& backend, const std::shared_ptr<Exchange>& exchange);

}  // namespace sluice
