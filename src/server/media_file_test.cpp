#include "server/media_file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace sluice {
namespace {

namespace fs = std::filesystem;

class MediaFileTest : public testing::Test {
 protected:
  MediaFileTest() {
    std::string name = (fs::temp_directory_path() / "media_file_XXXXXX").string();
    directory_ = ::mkdtemp(name.data());
    root_ = directory_ / "media";
    fs::create_directories(root_ / "sub");
    write(root_ / "a b.png", "picture");
    write(root_ / "sub" / "c.png", "other");
    write(directory_ / "secret", "secret");
    fs::create_symlink(directory_ / "secret", root_ / "out");
    fs::create_symlink("../secret", root_ / "up");
    fs::create_symlink("sub/c.png", root_ / "in");
    fs::create_directory_symlink(directory_, root_ / "way");
  }
  ~MediaFileTest() override { fs::remove_all(directory_); }

  static void write(const fs::path& path, const std::string& text) { std::ofstream(path) << text; }

  std::string url(const std::string& name) const { return "file://" + root_.string() + name; }

  // The text of the file, or the code of the error.
  std::string read(const std::string& file_url, std::size_t bytes_max = 100) const {
    const auto bytes = read_media_file(file_url, root_, bytes_max);
    return bytes ? std::string(reinterpret_cast<const char*>(bytes->data()), bytes->size())
                 : "error " + std::string(to_string(bytes.error().code));
  }

  fs::path directory_;
  fs::path root_;
};

TEST_F(MediaFileTest, FilesBelowTheRoot) {
  EXPECT_EQ(read(url("/a%20b.png")), "picture");
  EXPECT_EQ(read(url("/sub/c.png")), "other");
  EXPECT_EQ(read(url("/sub/../a b.png")), "picture");
  EXPECT_EQ(read(url("/in")), "other");
  EXPECT_EQ(read("file://localhost" + root_.string() + "/in"), "other");
  EXPECT_EQ(read("file:" + root_.string() + "/in"), "other");
}

TEST_F(MediaFileTest, NoWayOut) {
  const std::string refused = "error " + std::string(to_string(ErrorCode::unsupported));
  EXPECT_EQ(read("file://" + directory_.string() + "/secret"), refused);
  EXPECT_EQ(read(url("/../secret")), refused);
  EXPECT_EQ(read(url("/%2e%2e/secret")), refused);
  EXPECT_EQ(read(url("/out")), refused);
  EXPECT_EQ(read(url("/up")), refused);
  EXPECT_EQ(read(url("/way/secret")), refused);
  EXPECT_EQ(read(url("/a%00b")), refused);
  EXPECT_EQ(read(url("/a%2")), refused);
  EXPECT_EQ(read("file://elsewhere" + root_.string() + "/in"), refused);
  EXPECT_EQ(read("file:"), refused);
  EXPECT_EQ(read("file:///etc/passwd"), refused);
  const auto no_root = read_media_file(url("/in"), {}, 100);
  ASSERT_FALSE(no_root);
  EXPECT_EQ(no_root.error().code, ErrorCode::unsupported);
}

TEST_F(MediaFileTest, WhatIsNoFileOrTooLarge) {
  EXPECT_EQ(read(url("/none")), "error " + std::string(to_string(ErrorCode::not_found)));
  EXPECT_EQ(read(url("/sub")), "error " + std::string(to_string(ErrorCode::invalid_argument)));
  EXPECT_EQ(read(url("/in"), 4), "error " + std::string(to_string(ErrorCode::resource_exhausted)));
  EXPECT_EQ(read(url("/in"), 5), "other");
  ASSERT_EQ(::mkfifo((root_ / "pipe").c_str(), 0600), 0);
  EXPECT_EQ(read(url("/pipe")), "error " + std::string(to_string(ErrorCode::invalid_argument)));
}

}  // namespace
}  // namespace sluice
