#include "media/resize.h"

#include <gtest/gtest.h>
#include <openssl/sha.h>

#include <fmt/format.h>

#include "media/test_pictures.h"

namespace sluice {
namespace {

std::string sha256_hex(const std::vector<std::uint8_t>& bytes) {
  std::array<unsigned char, SHA256_DIGEST_LENGTH> digest{};
  SHA256(bytes.data(), bytes.size(), digest.data());
  std::string hex;
  for (const unsigned char byte : digest) {
    hex += fmt::format("{:02x}", byte);
  }
  return hex;
}

PictureSize size_in(const boost::json::value& pair) {
  return {.width = pair.at(0).as_int64(), .height = pair.at(1).as_int64()};
}

Picture raw_picture(std::string_view name, PictureSize size) {
  Picture picture{.size = size, .pixels = {}};
  for (const std::byte byte : test::read_bytes(test::testdata() / name)) {
    picture.pixels.push_back(std::to_integer<std::uint8_t>(byte));
  }
  return picture;
}

TEST(Resize, EqualsPillow) {
  const boost::json::value cases = test::read_json(test::testdata() / "resize.json");
  ASSERT_GE(cases.as_array().size(), 20U);
  for (const boost::json::value& entry : cases.as_array()) {
    const PictureSize to = size_in(entry.at("to"));
    const Picture resized = resize(test::formula_picture(size_in(entry.at("from"))), to);
    EXPECT_EQ(resized.size, to);
    EXPECT_EQ(sha256_hex(resized.pixels), std::string_view(entry.at("sha256").as_string()))
        << entry;
  }
}

TEST(Resize, EqualsTheReferenceModelsGolden) {
  const Picture source = raw_picture("tinyvl_50x83.rgb", {.width = 83, .height = 50});
  const Picture want = raw_picture("tinyvl_64x96.rgb", {.width = 96, .height = 64});
  EXPECT_EQ(resize(source, want.size).pixels, want.pixels);
}

TEST(Resize, TheSameSizeIsACopy) {
  const Picture source = test::formula_picture({.width = 31, .height = 7});
  EXPECT_EQ(resize(source, source.size).pixels, source.pixels);
}

TEST(Resize, OneColourStaysThatColour) {
  Picture source{.size = {.width = 45, .height = 13}, .pixels = {}};
  source.pixels.assign(45 * 13 * 3, 200);
  for (const PictureSize size :
       {PictureSize{.width = 7, .height = 64}, {.width = 90, .height = 2}}) {
    for (const std::uint8_t byte : resize(source, size).pixels) {
      ASSERT_EQ(byte, 200);
    }
  }
}

}  // namespace
}  // namespace sluice
