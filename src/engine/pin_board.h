// Which prefixes are pinned: by what name, until when, how often used. Their memory is the cache's.
//
// Thread rule: one owner (the engine thread).
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "cache/hybrid_cache.h"
#include "engine/engine.h"

namespace sluice {

class PinBoard {
 public:
  static constexpr std::int64_t kPinsMax = 1024;

  explicit PinBoard(HybridCache& cache) : cache_(cache) {}

  // Pins the prefix `tokens` (whole blocks) if it is stored with the state after it; nothing when
  // it is not. Error resource_exhausted: it would not fit even then.
  Result<std::optional<PromptPinned>> pin(std::string_view salt, std::span<const TokenId> tokens,
                                          const PinLabel& label, Clock::TimePoint now);

  // Pins what a file says was pinned, if it fits and is not pinned yet. What is left of its time
  // begins now.
  bool restore(const LoadedPin& pin, Clock::TimePoint now);
  // For a file; after end_expired() of the same moment, so that all have time left.
  std::vector<CacheFilePin> labels(Clock::TimePoint now) const;

  bool unpin(std::string_view id);  // false: there is no such pin
  void unpin_all();
  void unpin_all_of(std::string_view salt);
  void end_expired(Clock::TimePoint now);
  std::optional<Clock::TimePoint> next_end() const;

  // The sequence went on from what was stored.
  void count_hits(const SequenceCache& sequence, Clock::TimePoint now);

  std::vector<PinnedPrefix> list() const;  // oldest first
  std::int64_t count() const { return std::ssize(pins_); }

 private:
  struct Pin {
    PinnedPrefix prefix;
    std::string salt;
    NodeId node = 0;
  };

  template <class Condition>
  std::size_t unpin_if(Condition condition);

  HybridCache& cache_;
  std::vector<Pin> pins_;
};

}  // namespace sluice
