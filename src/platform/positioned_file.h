// A regular file whose bytes are read at positions. Unlike MappedFile it may shrink meanwhile:
// reading beyond its end is an Error. Move-only. Thread rule: one owner.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>

#include "base/result.h"

namespace sluice {

class PositionedFile {
 public:
  // Errors: not_found, invalid_argument (a directory or device), io (no permission), each with the
  // path.
  static Result<PositionedFile> open(const std::filesystem::path& path);
  PositionedFile(PositionedFile&& other) noexcept;
  PositionedFile& operator=(PositionedFile&& other) noexcept;
  ~PositionedFile();

  const std::filesystem::path& path() const { return path_; }
  std::uint64_t size() const { return size_; }  // when it was opened

  // Fills `bytes`. Errors: io; corrupt_data when the file ends before.
  Result<void> read(std::uint64_t position, std::span<std::byte> bytes) const;

 private:
  PositionedFile(std::filesystem::path path, int descriptor, std::uint64_t size);

  std::filesystem::path path_;
  int descriptor_ = -1;
  std::uint64_t size_ = 0;
};

}  // namespace sluice
