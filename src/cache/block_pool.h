// The blocks of KV memory: fixed size, counted references, zero when handed out.
// Knows bytes, not layers: model/cache_layout.h says what lies in a block.
//
// Thread rule: one owner (the engine thread).
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/result.h"
#include "cache/zeroed_slab.h"

namespace sluice {

using BlockId = std::int32_t;

struct BlockPoolShape {
  std::size_t block_bytes = 0;
  std::int64_t block_count = 0;
};

class BlockPool {
 public:
  static Result<BlockPool> create(const BlockPoolShape& shape);

  // A zeroed block with one reference; nothing when all are in use.
  std::optional<BlockId> allocate();
  void acquire(BlockId id);  // one more reference; the block is in use
  void release(BlockId id);  // one less; free at zero

  std::int32_t reference_count(BlockId id) const;
  std::int64_t block_count() const { return slab_.item_count(); }
  std::int64_t used_count() const { return slab_.used_count(); }
  std::int64_t free_count() const { return slab_.free_count(); }
  std::byte* data() { return slab_.data(); }  // block id * block_bytes
  const std::byte* data() const { return slab_.data(); }
  std::int64_t resident_count() const { return slab_.resident_count(); }
  bool discard_free() { return slab_.discard_free(); }

  void check_invariants() const;

 private:
  explicit BlockPool(ZeroedSlab slab);

  ZeroedSlab slab_;
  std::vector<std::int32_t> references_;  // [block_count]; 0 = free
};

}  // namespace sluice
