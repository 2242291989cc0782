#include "platform/atomic_directory.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <random>
#include <system_error>
#include <utility>

namespace sluice {
namespace {

namespace fs = std::filesystem;

std::unexpected<Error> io_error(const fs::path& path, std::string_view action,
                                const std::error_code& code) {
  return fail(ErrorCode::io, fmt::format("cannot {} {}: {}", action, path.string(), code.message()),
              path.string());
}

// "out/" names the same directory as "out".
fs::path without_separator(fs::path path) {
  return path.has_filename() ? path : path.parent_path();
}

// Makes the rename durable where the file system can.
void sync_directory(const fs::path& directory) {
  const int descriptor =
      open(directory.empty() ? "." : directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor >= 0) {
    fsync(descriptor);
    close(descriptor);
  }
}

}  // namespace

Result<std::unique_ptr<AtomicDirectory>> AtomicDirectory::create(const fs::path& path) {
  const fs::path whole = without_separator(path);
  std::error_code code;
  const fs::file_status status = fs::status(whole, code);
  const bool free = !fs::exists(status) || (fs::is_directory(status) && fs::is_empty(whole, code));
  if (whole.empty() || !free) {
    return fail(
        ErrorCode::invalid_argument,
        fmt::format("{} exists: want a name that is free, or an empty directory", whole.string()),
        whole.string());
  }
  std::random_device random;
  fs::path temporary = whole;
  temporary += fmt::format(".partial-{:08x}{:08x}", random(), random());
  if (!fs::create_directory(temporary, code)) {
    return io_error(temporary, "create", code);
  }
  return std::unique_ptr<AtomicDirectory>(new AtomicDirectory(whole, std::move(temporary)));
}

AtomicDirectory::~AtomicDirectory() {
  if (!temporary_.empty()) {
    std::error_code ignored;
    fs::remove_all(temporary_, ignored);
  }
}

Result<void> AtomicDirectory::commit() {
  sync_directory(temporary_);
  std::error_code code;
  fs::rename(temporary_, path_, code);
  if (code) {
    return io_error(path_, "rename to", code);
  }
  temporary_.clear();
  sync_directory(path_.parent_path());
  return {};
}

}  // namespace sluice
