#include "cache/state_pool.h"

#include <utility>

namespace sluice {

Result<StatePool> StatePool::create(const StatePoolShape& shape) {
  return StatePool(SLUICE_TRY(ZeroedSlab::create(
      "state slots", {.item_bytes = shape.slot_bytes, .item_count = shape.slot_count})));
}

StatePool::StatePool(ZeroedSlab slab) : slab_(std::move(slab)) {}

}  // namespace sluice
