// Large zero-filled memory straight from the operating system: page aligned, backed by huge pages
// when the kernel offers them, resident only once touched. Move-only; fixed size for life.
#pragma once

#include <cstddef>
#include <span>

#include "base/result.h"

namespace sluice {

class AlignedBuffer {
 public:
  AlignedBuffer() = default;
  AlignedBuffer(AlignedBuffer&& other) noexcept;
  AlignedBuffer& operator=(AlignedBuffer&& other) noexcept;
  ~AlignedBuffer();

  // Reserves `bytes` (0 is allowed) of zeros. Error resource_exhausted with the size on refusal.
  static Result<AlignedBuffer> allocate(std::size_t bytes);

  // Makes [offset, offset + bytes) zero and gives its whole pages back to the operating system;
  // they become resident again when next touched.
  void discard(std::size_t offset, std::size_t bytes);

  std::byte* data() { return data_; }
  const std::byte* data() const { return data_; }
  std::size_t size() const { return size_; }

  template <typename T>
  T* as() {
    return reinterpret_cast<T*>(data_);
  }
  template <typename T>
  const T* as() const {
    return reinterpret_cast<const T*>(data_);
  }

 private:
  AlignedBuffer(std::byte* data, std::size_t size) : data_(data), size_(size) {}

  std::byte* data_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace sluice
