// Carves typed arrays out of one memory region, each 64-byte aligned. Run once without memory to
// learn the size, then again on the memory to get the addresses.
#pragma once

#include <cstddef>
#include <cstdint>

namespace sluice {

class RegionPlan {
 public:
  explicit RegionPlan(std::byte* base = nullptr) : base_(base) {}

  template <typename T>
  T* take(std::int64_t count) {
    std::byte* address = base_ == nullptr ? nullptr : base_ + used_;
    used_ += (static_cast<std::size_t>(count) * sizeof(T) + 63) / 64 * 64;
    return reinterpret_cast<T*>(address);
  }

  std::size_t used() const { return used_; }

 private:
  std::byte* base_;
  std::size_t used_ = 0;
};

}  // namespace sluice
