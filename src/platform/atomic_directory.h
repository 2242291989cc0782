// A directory that appears under its name complete or not at all: filled under a temporary name
// beside it, then renamed. Not finished (an error, an early return): removed with all that is in
// it. A process that is killed leaves NAME.partial-N behind. Thread rule: one owner.
#pragma once

#include <filesystem>
#include <memory>

#include "base/result.h"

namespace sluice {

class AtomicDirectory {
 public:
  // Error invalid_argument when `path` exists and is not an empty directory, io when its parent
  // refuses.
  static Result<std::unique_ptr<AtomicDirectory>> create(const std::filesystem::path& path);
  ~AtomicDirectory();
  AtomicDirectory(const AtomicDirectory&) = delete;
  AtomicDirectory& operator=(const AtomicDirectory&) = delete;

  // Where to put the files.
  const std::filesystem::path& path() const { return temporary_; }
  // Makes the directory visible. No call may follow.
  Result<void> commit();

 private:
  AtomicDirectory(std::filesystem::path path, std::filesystem::path temporary)
      : path_(std::move(path)), temporary_(std::move(temporary)) {}

  std::filesystem::path path_;
  std::filesystem::path temporary_;  // empty once committed
};

}  // namespace sluice
