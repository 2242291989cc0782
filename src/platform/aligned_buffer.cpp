#include "platform/aligned_buffer.h"

#include <sys/mman.h>

#include <cerrno>
#include <cstring>
#include <string>
#include <utility>

namespace sluice {
namespace {

constexpr std::size_t kHugePageBytes = std::size_t{2} << 20;

}  // namespace

Result<AlignedBuffer> AlignedBuffer::allocate(std::size_t bytes) {
  if (bytes == 0) {
    return AlignedBuffer();
  }
  void* address = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (address == MAP_FAILED) {
    return fail(ErrorCode::resource_exhausted, "cannot reserve " + std::to_string(bytes) +
                                                   " bytes of memory: " + std::strerror(errno));
  }
  if (bytes >= kHugePageBytes) {
    // Advice only: without huge pages the memory works the same, somewhat slower.
    (void)madvise(address, bytes, MADV_HUGEPAGE);
  }
  return AlignedBuffer(static_cast<std::byte*>(address), bytes);
}

AlignedBuffer::AlignedBuffer(AlignedBuffer&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}

AlignedBuffer& AlignedBuffer::operator=(AlignedBuffer&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  return *this;
}

AlignedBuffer::~AlignedBuffer() {
  if (data_ != nullptr) {
    munmap(data_, size_);
  }
}

}  // namespace sluice
