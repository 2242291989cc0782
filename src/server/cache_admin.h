// What an operator may ask about the prefix cache, and do to it.
#pragma once

#include <memory>

#include "server/backend.h"

namespace sluice {

void handle_cache(const Backend& backend, const std::shared_ptr<Exchange>& exchange);
void handle_cache_flush(const Backend& backend, const std::shared_ptr<Exchange>& exchange);

}  // namespace sluice
