// `serve --cache-file`: kept prefixes are there again after a restart.
#pragma once

#include "apps/serve_options.h"
#include "base/result.h"
#include "engine/engine.h"

namespace sluice::apps {

// Errors (invalid_argument): --cache-dir is no directory, --cache-file without --cache-memory.
Result<void> check_cache_options(const ServeOptions& options);

// Both wait until it is done, and log what became of it. A file that is refused is a warning: the
// server starts with nothing. A file that cannot be written leaves the old one.
void load_cache_at_start(Engine& engine, const CacheFile& file);
void save_cache_at_end(Engine& engine, const CacheFile& file);

}  // namespace sluice::apps
