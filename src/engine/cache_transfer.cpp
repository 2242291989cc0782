#include "engine/cache_transfer.h"

#include <vector>

namespace sluice {
namespace {

CacheTransfer describe(const CacheMoved& moved, std::int64_t pins, double seconds) {
  return {.tokens = moved.block_count * kPrefixBlockTokens,
          .bytes = moved.bytes,
          .pins = pins,
          .seconds = seconds};
}

}  // namespace

Result<CacheTransfer> save_cache(const HybridCache& cache, PinBoard& pins, TokenNames& names,
                                 const CacheFile& file, const Clock& clock) {
  const Clock::TimePoint began = clock.now();
  pins.end_expired(began);
  const std::vector<CacheFilePin> labels = pins.labels(began);
  const CacheMoved moved = SLUICE_TRY(cache.save(file.path, file.identity, labels, names));
  return describe(moved, std::ssize(labels), seconds_between(began, clock.now()));
}

Result<CacheTransfer> load_cache(HybridCache& cache, PinBoard& pins, TokenNames& names,
                                 const CacheFile& file, const Clock& clock) {
  const Clock::TimePoint began = clock.now();
  pins.end_expired(began);
  std::vector<LoadedPin> labels;
  const CacheMoved moved = SLUICE_TRY(cache.load(file.path, file.identity, labels, names));
  std::int64_t pinned = 0;
  for (const LoadedPin& label : labels) {
    pinned += pins.restore(label, began) ? 1 : 0;
  }
  return describe(moved, pinned, seconds_between(began, clock.now()));
}

}  // namespace sluice
