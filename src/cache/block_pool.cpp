#include "cache/block_pool.h"

#include <limits>
#include <utility>

#include "base/check.h"

namespace sluice {

Result<BlockPool> BlockPool::create(const BlockPoolShape& shape) {
  return BlockPool(SLUICE_TRY(ZeroedSlab::create(
      "KV blocks", {.item_bytes = shape.block_bytes, .item_count = shape.block_count})));
}

BlockPool::BlockPool(ZeroedSlab slab)
    : slab_(std::move(slab)), references_(static_cast<std::size_t>(slab_.item_count())) {}

std::optional<BlockId> BlockPool::allocate() {
  const std::optional<BlockId> id = slab_.allocate();
  if (id) {
    references_[static_cast<std::size_t>(*id)] = 1;
  }
  return id;
}

void BlockPool::acquire(BlockId id) {
  SLUICE_CHECK(reference_count(id) >= 1);
  SLUICE_CHECK(reference_count(id) < std::numeric_limits<std::int32_t>::max());
  ++references_[static_cast<std::size_t>(id)];
}

void BlockPool::release(BlockId id) {
  SLUICE_CHECK(reference_count(id) >= 1);
  if (--references_[static_cast<std::size_t>(id)] == 0) {
    slab_.free(id);
  }
}

std::int32_t BlockPool::reference_count(BlockId id) const {
  SLUICE_CHECK(id >= 0);
  SLUICE_CHECK(id < slab_.item_count());
  return references_[static_cast<std::size_t>(id)];
}

void BlockPool::check_invariants() const {
  slab_.check_invariants();
  for (BlockId id = 0; id < slab_.item_count(); ++id) {
    SLUICE_CHECK(reference_count(id) >= 0);
    SLUICE_CHECK((reference_count(id) > 0) == slab_.is_used(id));
  }
}

}  // namespace sluice
