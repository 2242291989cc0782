// Kept prefixes and pins to a file and back, between two steps. Everything that runs waits for the
// time it takes: reading or writing all bytes once, and for saving until they are on disk. Pins
// whose time is over end first.
//
// Thread rule: the engine thread.
#pragma once

#include "base/clock.h"
#include "cache/hybrid_cache.h"
#include "engine/engine.h"
#include "engine/pin_board.h"

namespace sluice {

// Errors: see Engine::save_cache().
Result<CacheTransfer> save_cache(const HybridCache& cache, PinBoard& pins, TokenNames& names,
                                 const CacheFile& file, const Clock& clock);

// A pin that would not fit the budget for pins is left out: its prefix is loaded all the same.
// Errors: see Engine::load_cache().
Result<CacheTransfer> load_cache(HybridCache& cache, PinBoard& pins, TokenNames& names,
                                 const CacheFile& file, const Clock& clock);

}  // namespace sluice
