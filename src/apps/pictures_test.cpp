#include "apps/pictures.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>

namespace sluice::apps {
namespace {

class DroppedPicture : public ::testing::Test {
 protected:
  DroppedPicture()
      : directory_(std::filesystem::temp_directory_path() /
                   ("sluice_dropped_" + std::to_string(getpid()))) {
    std::filesystem::create_directories(directory_);
    write("plain.png", "\x89PNG\r\n\x1a\n and more");
    write("a cat's.gif", "GIF89a and more");
    write("words.txt", "just words");
  }
  ~DroppedPicture() override { std::filesystem::remove_all(directory_); }

  void write(const std::string& name, const std::string& content) {
    std::ofstream(directory_ / name, std::ios::binary) << content;
  }
  std::string path(const std::string& name) const { return (directory_ / name).string(); }

  std::filesystem::path directory_;
};

TEST_F(DroppedPicture, IsFoundHoweverTheTerminalWritesIt) {
  EXPECT_EQ(dropped_picture(path("plain.png")), path("plain.png"));
  EXPECT_EQ(dropped_picture("  '" + path("plain.png") + "' "), path("plain.png"));
  EXPECT_EQ(dropped_picture("\"" + path("a cat's.gif") + "\""), path("a cat's.gif"));
  EXPECT_EQ(dropped_picture(path("a\\ cat\\'s.gif")), path("a cat's.gif"));
  EXPECT_EQ(dropped_picture(path("a cat's.gif")), path("a cat's.gif"));
}

TEST_F(DroppedPicture, OtherLinesAreMessages) {
  EXPECT_EQ(dropped_picture(""), std::nullopt);
  EXPECT_EQ(dropped_picture("   "), std::nullopt);
  EXPECT_EQ(dropped_picture("what is this?"), std::nullopt);
  EXPECT_EQ(dropped_picture(path("words.txt")), std::nullopt);
  EXPECT_EQ(dropped_picture(path("missing.png")), std::nullopt);
  EXPECT_EQ(dropped_picture(directory_.string()), std::nullopt);
  EXPECT_EQ(dropped_picture("look at " + path("plain.png")), std::nullopt);
  EXPECT_EQ(dropped_picture("\\"), std::nullopt);
}

}  // namespace
}  // namespace sluice::apps
