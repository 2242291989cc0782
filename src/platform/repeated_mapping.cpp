#include "platform/repeated_mapping.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>
#include <utility>

#include "base/check.h"
#include "base/checked_math.h"

namespace sluice {
namespace {

std::unexpected<Error> refused(std::size_t bytes, const char* action) {
  return fail(ErrorCode::resource_exhausted,
              std::string("cannot ") + action + " " + std::to_string(bytes) +
                  " bytes of repeated memory: " + std::strerror(errno));
}

// An unnamed file with the bytes of `piece`, or -1 with errno.
int make_file(std::span<const std::byte> piece) {
  const int descriptor = memfd_create("sluice-pattern", MFD_CLOEXEC);
  std::size_t written = 0;
  while (descriptor >= 0 && written < piece.size()) {
    const ssize_t count = write(descriptor, piece.data() + written, piece.size() - written);
    if (count <= 0) {
      const int code = count == 0 ? EIO : errno;
      close(descriptor);
      errno = code;
      return -1;
    }
    written += static_cast<std::size_t>(count);
  }
  return descriptor;
}

}  // namespace

Result<RepeatedMapping> RepeatedMapping::make(std::span<const std::byte> piece, std::size_t bytes) {
  static const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  SLUICE_CHECK(!piece.empty());
  SLUICE_CHECK(piece.size() % page == 0);
  const std::size_t size = round_up(bytes, piece.size());
  if (size == 0) {
    return RepeatedMapping();
  }
  const int descriptor = make_file(piece);
  if (descriptor < 0) {
    return refused(piece.size(), "write");
  }
  void* address =
      mmap(nullptr, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (address == MAP_FAILED) {
    close(descriptor);
    return refused(size, "reserve");
  }
  auto* begin = static_cast<std::byte*>(address);
  RepeatedMapping mapping(std::span<const std::byte>(begin, size));  // unmaps on the way out
  for (std::size_t offset = 0; offset < size; offset += piece.size()) {
    if (mmap(begin + offset, piece.size(), PROT_READ, MAP_SHARED | MAP_FIXED, descriptor, 0) ==
        MAP_FAILED) {
      auto error = refused(size, "map");
      close(descriptor);
      return error;
    }
  }
  close(descriptor);  // the mappings keep the pages
  return mapping;
}

RepeatedMapping::RepeatedMapping(RepeatedMapping&& other) noexcept
    : bytes_(std::exchange(other.bytes_, {})) {}

RepeatedMapping& RepeatedMapping::operator=(RepeatedMapping&& other) noexcept {
  std::swap(bytes_, other.bytes_);
  return *this;
}

RepeatedMapping::~RepeatedMapping() {
  if (!bytes_.empty()) {
    munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
  }
}

}  // namespace sluice
