// A fixed number of equal items in one lazily touched buffer; an item is zero when handed out
// unless its new owner says otherwise. Knows bytes only. BlockPool and StatePool put ownership on
// top.
//
// Memory becomes resident when an item is first used: resident free items go out before others, and
// an item without pages is not written (it is zero). discard_free() gives the pages of a free item
// back, so that two slabs can share one budget of resident memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "platform/aligned_buffer.h"

namespace sluice {

struct SlabShape {
  std::size_t item_bytes = 0;   // may be 0: items without content
  std::int64_t item_count = 0;  // 0 to 2^26
};

// What a new owner finds in an item. `any`: what the last owner left; for who overwrites it whole.
enum class Contents { zero, any };

class ZeroedSlab {
 public:
  // Bounds the bookkeeping (a few bytes per item); as KV blocks it is 4 billion tokens.
  static constexpr std::int64_t kItemsMax = std::int64_t{1} << 26;

  // `name` is for messages: "KV blocks". Errors: invalid_argument (count), resource_exhausted (the
  // bytes overflow, or the operating system refuses).
  static Result<ZeroedSlab> create(std::string_view name, const SlabShape& shape);

  // The id of an item; nothing when all are in use.
  std::optional<std::int32_t> allocate(Contents contents = Contents::zero);
  void free(std::int32_t id);  // id is in use

  // Takes one free item out of residence; false when there is none.
  bool discard_free();

  bool is_used(std::int32_t id) const;
  std::int64_t item_count() const { return shape_.item_count; }
  std::int64_t used_count() const { return resident_count() - std::ssize(free_); }
  std::int64_t resident_count() const { return fresh_ - std::ssize(discarded_); }
  std::int64_t free_count() const { return item_count() - used_count(); }
  std::size_t item_bytes() const { return shape_.item_bytes; }
  std::byte* data() { return memory_.data(); }  // id * item_bytes()
  const std::byte* data() const { return memory_.data(); }

  // Ends the process if free + used != total or an item is in two places. O(item_count).
  void check_invariants() const;

 private:
  ZeroedSlab(const SlabShape& shape, AlignedBuffer memory);

  SlabShape shape_;
  AlignedBuffer memory_;
  std::int64_t fresh_ = 0;  // items [fresh_, item_count) were never handed out
  // Used before, free now; last in, first out.
  std::vector<std::int32_t> free_;       // with what their last owner left in them
  std::vector<std::int32_t> discarded_;  // zero, without pages
  std::vector<std::uint8_t> used_;       // [item_count]
};

}  // namespace sluice
