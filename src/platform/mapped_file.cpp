#include "platform/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

namespace sluice {
namespace {

std::unexpected<Error> os_error(const std::filesystem::path& path, const char* action, int code) {
  const ErrorCode kind = code == ENOENT ? ErrorCode::not_found : ErrorCode::io;
  return fail(kind, std::string(action) + " " + path.string() + ": " + std::strerror(code),
              path.string());
}

}  // namespace

Result<MappedFile> MappedFile::open(const std::filesystem::path& path) {
  const int descriptor =
      ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);  // a FIFO must not hang
  if (descriptor < 0) {
    return os_error(path, "cannot open", errno);
  }
  struct stat status{};
  if (fstat(descriptor, &status) != 0) {
    const int code = errno;
    close(descriptor);
    return os_error(path, "cannot stat", code);
  }
  if (!S_ISREG(status.st_mode)) {
    close(descriptor);
    return fail(ErrorCode::io, path.string() + " is not a regular file", path.string());
  }
  const auto size = static_cast<std::size_t>(status.st_size);
  if (size == 0) {
    close(descriptor);
    return MappedFile();
  }
  void* address = mmap(nullptr, size, PROT_READ, MAP_SHARED, descriptor, 0);
  const int code = errno;
  close(descriptor);  // the mapping keeps the file alive
  if (address == MAP_FAILED) {
    return os_error(path, "cannot map", code);
  }
  return MappedFile(std::span(static_cast<const std::byte*>(address), size));
}

MappedFile::MappedFile(MappedFile&& other) noexcept : bytes_(std::exchange(other.bytes_, {})) {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  std::swap(bytes_, other.bytes_);
  return *this;
}

MappedFile::~MappedFile() {
  if (!bytes_.empty()) {
    munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
  }
}

Result<std::string> read_text_file(const std::filesystem::path& path, std::size_t bytes_max) {
  const MappedFile file = SLUICE_TRY(MappedFile::open(path));
  if (file.bytes().size() > bytes_max) {
    return fail(ErrorCode::resource_exhausted,
                path.string() + " has " + std::to_string(file.bytes().size()) +
                    " bytes, the limit is " + std::to_string(bytes_max),
                path.string());
  }
  return std::string(reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size());
}

}  // namespace sluice
