// For tests: a folder with one cache file, gone afterwards.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstddef>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

namespace sluice {

class CacheFolderTest : public testing::Test {
 protected:
  CacheFolderTest() { std::filesystem::create_directories(directory_); }
  ~CacheFolderTest() override { std::filesystem::remove_all(directory_); }

  std::string read() const {
    std::ifstream file(path_, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  void write(const std::string& bytes) const {
    std::ofstream(path_, std::ios::binary | std::ios::trunc) << bytes;
  }

  void write_byte(std::size_t at, char byte) const {
    std::fstream file(path_, std::ios::binary | std::ios::in | std::ios::out);
    file.seekp(static_cast<std::streamoff>(at)).put(byte);
  }

  std::filesystem::path directory_ =
      std::filesystem::temp_directory_path() / ("sluice_cache_test_" + std::to_string(getpid()));
  std::filesystem::path path_ = directory_ / "prefixes";
};

}  // namespace sluice
