// For tests: a directory that is removed with its content.
#pragma once

#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>

#include <stdlib.h>

namespace sluice {

class TemporaryDirectory {
 public:
  TemporaryDirectory() {
    std::string pattern = (std::filesystem::temp_directory_path() / "sluice_text_XXXXXX").string();
    path_ = mkdtemp(pattern.data());
  }
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;
  ~TemporaryDirectory() { std::filesystem::remove_all(path_); }

  const std::filesystem::path& path() const { return path_; }

  void write(std::string_view name, std::string_view content) const {
    std::ofstream(path_ / name, std::ios::binary) << content;
  }

  // Copies a file of src/text/testdata.
  void copy(std::string_view name) const {
    const std::filesystem::path source =
        std::filesystem::path(SLUICE_SOURCE_DIR) / "src/text/testdata";
    std::filesystem::copy_file(source / name, path_ / name);
  }

 private:
  std::filesystem::path path_;
};

inline std::filesystem::path test_tokenizer_directory() {
  return std::filesystem::path(SLUICE_SOURCE_DIR) / "src/text/testdata";
}

}  // namespace sluice
