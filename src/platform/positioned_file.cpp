#include "platform/positioned_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

namespace sluice {
namespace {

constexpr std::size_t kReadBytesMax = std::size_t{1} << 30;  // one pread(2) takes less than 2 GiB

std::unexpected<Error> os_error(const std::filesystem::path& path, std::string_view action,
                                int code) {
  const ErrorCode kind = code == ENOENT ? ErrorCode::not_found : ErrorCode::io;
  return fail(kind, fmt::format("cannot {} {}: {}", action, path.string(), std::strerror(code)),
              path.string());
}

}  // namespace

Result<PositionedFile> PositionedFile::open(const std::filesystem::path& path) {
  const int descriptor =
      ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);  // a FIFO must not hang
  if (descriptor < 0) {
    return os_error(path, "open", errno);
  }
  PositionedFile file(path, descriptor, 0);
  struct stat status{};
  if (fstat(descriptor, &status) != 0) {
    return os_error(path, "stat", errno);
  }
  if (!S_ISREG(status.st_mode)) {
    return fail(ErrorCode::invalid_argument, fmt::format("{} is not a regular file", path.string()),
                path.string());
  }
  file.size_ = static_cast<std::uint64_t>(status.st_size);
  return file;
}

PositionedFile::PositionedFile(std::filesystem::path path, int descriptor, std::uint64_t size)
    : path_(std::move(path)), descriptor_(descriptor), size_(size) {}

PositionedFile::PositionedFile(PositionedFile&& other) noexcept
    : path_(std::move(other.path_)),
      descriptor_(std::exchange(other.descriptor_, -1)),
      size_(other.size_) {}

PositionedFile& PositionedFile::operator=(PositionedFile&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(descriptor_, other.descriptor_);
  std::swap(size_, other.size_);
  return *this;
}

PositionedFile::~PositionedFile() {
  if (descriptor_ >= 0) {
    close(descriptor_);
  }
}

Result<void> PositionedFile::read(std::uint64_t position, std::span<std::byte> bytes) const {
  while (!bytes.empty()) {
    const ssize_t count = pread(descriptor_, bytes.data(), std::min(bytes.size(), kReadBytesMax),
                                static_cast<off_t>(position));
    if (count < 0 && errno == EINTR) {
      continue;
    }
    if (count < 0) {
      return os_error(path_, "read", errno);
    }
    if (count == 0) {
      return fail(ErrorCode::corrupt_data,
                  fmt::format("{} ends at byte {}, where {} more should follow", path_.string(),
                              position, bytes.size()),
                  path_.string());
    }
    bytes = bytes.subspan(static_cast<std::size_t>(count));
    position += static_cast<std::uint64_t>(count);
  }
  return {};
}

}  // namespace sluice
