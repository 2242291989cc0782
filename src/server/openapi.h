// GET /openapi.json: docs/openapi.json, put into the program when it is built.
#pragma once

#include <memory>

#include "server/backend.h"

namespace sluice {

void handle_openapi(const Backend& backend, const std::shared_ptr<Exchange>& exchange);

}  // namespace sluice
