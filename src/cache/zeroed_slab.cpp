#include "cache/zeroed_slab.h"

#include <cstring>
#include <string>
#include <utility>

#include "base/check.h"
#include "base/checked_math.h"

namespace sluice {
Result<ZeroedSlab> ZeroedSlab::create(std::string_view name, const SlabShape& shape) {
  const std::string what = std::string(name) + ": " + std::to_string(shape.item_count) +
                           " items of " + std::to_string(shape.item_bytes) + " bytes";
  if (shape.item_count < 0 || shape.item_count > kItemsMax) {
    return fail(ErrorCode::invalid_argument, what + ", want 0 to " + std::to_string(kItemsMax));
  }
  const auto bytes = checked_mul(static_cast<std::size_t>(shape.item_count), shape.item_bytes);
  if (!bytes) {
    return fail(ErrorCode::resource_exhausted, what + " overflow the address space");
  }
  auto memory = AlignedBuffer::allocate(*bytes);
  if (!memory) {
    return fail(memory.error().code, what + ": " + memory.error().message);
  }
  return ZeroedSlab(shape, std::move(*memory));
}

ZeroedSlab::ZeroedSlab(const SlabShape& shape, AlignedBuffer memory)
    : shape_(shape), memory_(std::move(memory)) {
  free_.reserve(static_cast<std::size_t>(shape.item_count));
  discarded_.reserve(static_cast<std::size_t>(shape.item_count));
  used_.resize(static_cast<std::size_t>(shape.item_count));
}

std::optional<std::int32_t> ZeroedSlab::allocate(Contents contents) {
  std::int32_t id = 0;
  if (!free_.empty()) {
    id = free_.back();
    free_.pop_back();
    if (contents == Contents::zero && shape_.item_bytes != 0) {
      std::memset(data() + static_cast<std::size_t>(id) * shape_.item_bytes, 0, shape_.item_bytes);
    }
  } else if (!discarded_.empty()) {
    id = discarded_.back();
    discarded_.pop_back();
  } else if (fresh_ < shape_.item_count) {
    id = static_cast<std::int32_t>(fresh_++);
  } else {
    return std::nullopt;
  }
  SLUICE_CHECK(used_[static_cast<std::size_t>(id)] == 0);
  used_[static_cast<std::size_t>(id)] = 1;
  return id;
}

void ZeroedSlab::free(std::int32_t id) {
  SLUICE_CHECK(is_used(id));
  used_[static_cast<std::size_t>(id)] = 0;
  free_.push_back(id);
}

bool ZeroedSlab::discard_free() {
  if (free_.empty()) {
    return false;
  }
  const std::int32_t id = free_.back();
  free_.pop_back();
  memory_.discard(static_cast<std::size_t>(id) * shape_.item_bytes, shape_.item_bytes);
  discarded_.push_back(id);
  return true;
}

bool ZeroedSlab::is_used(std::int32_t id) const {
  SLUICE_CHECK(id >= 0);
  SLUICE_CHECK(id < shape_.item_count);
  return used_[static_cast<std::size_t>(id)] != 0;
}

void ZeroedSlab::check_invariants() const {
  std::vector<std::uint8_t> seen = used_;
  for (const auto* list : {&free_, &discarded_}) {
    for (const std::int32_t id : *list) {
      SLUICE_CHECK(id >= 0);
      SLUICE_CHECK(id < fresh_);
      SLUICE_CHECK(seen[static_cast<std::size_t>(id)] == 0);
      seen[static_cast<std::size_t>(id)] = 1;
    }
  }
  for (std::int64_t id = 0; id < shape_.item_count; ++id) {
    SLUICE_CHECK((seen[static_cast<std::size_t>(id)] != 0) == (id < fresh_));
  }
}

}  // namespace sluice
