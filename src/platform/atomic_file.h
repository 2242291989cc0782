// A file that appears under its name complete or not at all: written under a temporary name in the
// same directory, synced, renamed. Not finished (an error, an early return): removed. A process
// that is killed leaves NAME.partial-PID-N behind, and what was under NAME as it was. Thread rule:
// one owner.
#pragma once

#include <cstddef>
#include <filesystem>
#include <memory>
#include <span>

#include "base/result.h"

namespace sluice {

// Who may read it: whom the umask lets, or the owner alone.
enum class FileReaders { by_umask, owner };

class AtomicFile {
 public:
  // Error invalid_argument when the name belongs to something that is not a regular file (renaming
  // over a device would destroy it), io when the directory refuses.
  static Result<std::unique_ptr<AtomicFile>> create(const std::filesystem::path& path,
                                                    FileReaders readers = FileReaders::by_umask);
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  // Errors (io): a full disk, a size limit, each with the path.
  Result<void> write(std::span<const std::byte> bytes);
  // Makes the file durable and visible. No call may follow.
  Result<void> commit();

 private:
  AtomicFile(std::filesystem::path path, std::filesystem::path temporary, int descriptor)
      : path_(std::move(path)), temporary_(std::move(temporary)), descriptor_(descriptor) {}

  std::filesystem::path path_;
  std::filesystem::path temporary_;
  int descriptor_;
};

}  // namespace sluice
