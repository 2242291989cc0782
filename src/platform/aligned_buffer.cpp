#include "platform/aligned_buffer.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string>
#include <utility>

#include "base/check.h"

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

void AlignedBuffer::discard(std::size_t offset, std::size_t bytes) {
  SLUICE_CHECK(offset <= size_);
  SLUICE_CHECK(bytes <= size_ - offset);
  static const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  const std::size_t end = offset + bytes;
  const std::size_t first_page = std::min((offset + page - 1) / page * page, end);
  const std::size_t last_page = std::max(end / page * page, first_page);
  // Pages shared with a neighbour stay; so does everything if the system will not take it back.
  const bool returned = last_page > first_page &&
                        madvise(data_ + first_page, last_page - first_page, MADV_DONTNEED) == 0;
  std::memset(data_ + offset, 0, (returned ? first_page : end) - offset);
  if (returned) {
    std::memset(data_ + last_page, 0, end - last_page);
  }
}

AlignedBuffer::~AlignedBuffer() {
  if (data_ != nullptr) {
    munmap(data_, size_);
  }
}

}  // namespace sluice
