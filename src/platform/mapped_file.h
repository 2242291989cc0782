// A whole file mapped read-only. Move-only; the bytes live as long as the object.
// A file that shrinks while mapped ends the process with SIGBUS: weights on disk must not be
// truncated under a running server (replace files by rename).
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <string>

#include "base/result.h"

namespace sluice {

class MappedFile {
 public:
  MappedFile() = default;
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;
  ~MappedFile();

  // Errors: not_found, io (a directory, no permission), each with the path. An empty file maps to
  // an empty span.
  static Result<MappedFile> open(const std::filesystem::path& path);

  std::span<const std::byte> bytes() const { return bytes_; }

 private:
  explicit MappedFile(std::span<const std::byte> bytes) : bytes_(bytes) {}

  std::span<const std::byte> bytes_;
};

// The whole content of a (small) text file. Errors as above; resource_exhausted above bytes_max.
Result<std::string> read_text_file(const std::filesystem::path& path, std::size_t bytes_max);

}  // namespace sluice
