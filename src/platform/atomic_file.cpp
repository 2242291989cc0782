#include "platform/atomic_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <random>
#include <utility>

namespace sluice {
namespace {

constexpr std::size_t kWriteBytesMax = std::size_t{1} << 30;  // one write(2) takes less than 2 GiB

std::unexpected<Error> os_error(const std::filesystem::path& path, std::string_view action,
                                int code) {
  return fail(ErrorCode::io,
              fmt::format("cannot {} {}: {}", action, path.string(), std::strerror(code)),
              path.string());
}

// Makes the rename itself durable. Some file systems cannot sync a directory: not an error.
void sync_directory(const std::filesystem::path& directory) {
  const int descriptor =
      open(directory.empty() ? "." : directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor >= 0) {
    fsync(descriptor);
    close(descriptor);
  }
}

}  // namespace

Result<std::unique_ptr<AtomicFile>> AtomicFile::create(const std::filesystem::path& path,
                                                       FileReaders readers) {
  std::error_code code;
  const std::filesystem::file_status status = std::filesystem::status(path, code);
  if (std::filesystem::exists(status) && !std::filesystem::is_regular_file(status)) {
    return fail(ErrorCode::invalid_argument,
                fmt::format("{} exists and is not a regular file", path.string()), path.string());
  }
  std::random_device random;  // process ids repeat in containers
  std::filesystem::path temporary = path;
  temporary += fmt::format(".partial-{:08x}{:08x}", random(), random());
  const mode_t mode = readers == FileReaders::owner ? 0600 : 0666;
  const int descriptor = open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
  if (descriptor < 0) {
    return os_error(temporary, "create", errno);
  }
  return std::unique_ptr<AtomicFile>(new AtomicFile(path, std::move(temporary), descriptor));
}

AtomicFile::~AtomicFile() {
  if (descriptor_ >= 0) {
    close(descriptor_);
  }
  if (!temporary_.empty()) {
    unlink(temporary_.c_str());
  }
}

Result<void> AtomicFile::write(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t count =
        ::write(descriptor_, bytes.data(), std::min(bytes.size(), kWriteBytesMax));
    if (count < 0 && errno == EINTR) {
      continue;
    }
    if (count < 0) {
      return os_error(path_, "write", errno);
    }
    bytes = bytes.subspan(static_cast<std::size_t>(count));
  }
  return {};
}

Result<void> AtomicFile::commit() {
  if (fsync(descriptor_) != 0) {
    return os_error(path_, "sync", errno);
  }
  if (close(std::exchange(descriptor_, -1)) != 0) {
    return os_error(path_, "close", errno);
  }
  if (rename(temporary_.c_str(), path_.c_str()) != 0) {
    return os_error(path_, "rename to", errno);
  }
  temporary_.clear();
  sync_directory(path_.parent_path());
  return {};
}

}  // namespace sluice
