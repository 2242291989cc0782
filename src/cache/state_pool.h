// The slots of recurrent and conv state: one per running sequence, and those kept as checkpoints.
// Knows bytes, not layers: model/cache_layout.h says what lies in a slot.
//
// Thread rule: one owner (the engine thread).
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "base/result.h"
#include "cache/zeroed_slab.h"

namespace sluice {

using SlotId = std::int32_t;

struct StatePoolShape {
  std::size_t slot_bytes = 0;
  std::int64_t slot_count = 0;
};

class StatePool {
 public:
  static Result<StatePool> create(const StatePoolShape& shape);

  // A slot; nothing when all are in use. A slot has one owner.
  std::optional<SlotId> allocate(Contents contents = Contents::zero) {
    return slab_.allocate(contents);
  }
  void free(SlotId id) { slab_.free(id); }

  std::int64_t slot_count() const { return slab_.item_count(); }
  std::int64_t used_count() const { return slab_.used_count(); }
  std::int64_t free_count() const { return slab_.free_count(); }
  std::byte* data() { return slab_.data(); }  // slot id * slot_bytes
  const std::byte* data() const { return slab_.data(); }
  std::int64_t resident_count() const { return slab_.resident_count(); }
  bool discard_free() { return slab_.discard_free(); }

  void check_invariants() const { slab_.check_invariants(); }

 private:
  explicit StatePool(ZeroedSlab slab);

  ZeroedSlab slab_;
};

}  // namespace sluice
