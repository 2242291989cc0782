// Kept prefixes to a file of the cache folder and back, for operators. A name is one in that folder
// and nowhere else (api/cache_files.h).
#pragma once

#include <memory>

#include "server/backend.h"

namespace sluice {

void handle_save_cache(const Backend& backend, const std::shared_ptr<Exchange>& exchange);
void handle_load_cache(const Backend& backend, const std::shared_ptr<Exchange>& exchange);

}  // namespace sluice
