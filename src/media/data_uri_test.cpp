#include "media/data_uri.h"

#include <gtest/gtest.h>

#include "media/test_pictures.h"

namespace sluice {
namespace {

constexpr std::size_t kBytesMax = 1000;

std::string decoded(std::string_view text) {
  const Result<std::vector<std::byte>> bytes = decode_base64(text, kBytesMax);
  if (!bytes) {
    return "error: " + bytes.error().message;
  }
  return {reinterpret_cast<const char*>(bytes->data()), bytes->size()};
}

TEST(Base64, EveryLengthOfTheLastGroup) {
  EXPECT_EQ(decoded(""), "");
  EXPECT_EQ(decoded("Zg=="), "f");
  EXPECT_EQ(decoded("Zm8="), "fo");
  EXPECT_EQ(decoded("Zm9v"), "foo");
  EXPECT_EQ(decoded("Zm9vYmFyIQ=="), "foobar!");
}

TEST(Base64, WhatClientsSend) {
  EXPECT_EQ(decoded("Zg"), "f");  // no padding
  EXPECT_EQ(decoded("Zm8"), "fo");
  EXPECT_EQ(decoded(" Zm9v\r\nYm Fy\n"), "foobar");
  EXPECT_EQ(decoded("Zg=\n=\n"), "f");
  EXPECT_EQ(decoded("+/-_"), decoded("-_+/"));
  EXPECT_EQ(decoded("+/-_"), "\xfb\xff\xbf");
  EXPECT_EQ(decoded("%2B%2f-_"), "\xfb\xff\xbf");
  EXPECT_EQ(decoded("Zg%3D%3D"), "f");
}

TEST(Base64, EveryByteComesBack) {
  std::string want;
  for (int value = 0; value < 256; ++value) {
    want += static_cast<char>(value);
  }
  constexpr std::string_view kAlphabet =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  for (std::size_t bit = 0; bit < want.size() * 8; bit += 6) {
    unsigned group = static_cast<unsigned char>(want[bit / 8]) * 256U;
    group += bit / 8 + 1 < want.size() ? static_cast<unsigned char>(want[bit / 8 + 1]) : 0U;
    text += kAlphabet[(group >> (10U - bit % 8)) & 63U];
  }
  EXPECT_EQ(decoded(text), want);
}

TEST(Base64, RefusesWhatIsNone) {
  const auto refused = [](std::string_view text, std::string_view part) {
    EXPECT_ERROR(decode_base64(text, kBytesMax), ErrorCode::invalid_argument, {"not base64", part});
  };
  refused("Zm9vY", "single character");
  refused("Zm9v*mFy", "'*' at character 4 of 8");
  refused("Zm\x01", "byte 0x01 at character 2");
  refused("Zm\xc3\xa9", "byte 0xc3");
  refused("Zg==Zg==", "after '='");
  refused("Zg=", "wrong number of '='");
  refused("Zm9v=", "wrong number of '='");
  refused("====", "wrong number of '='");
  refused("Zm9v%2", "'%' at character 4");
  refused("Zm9v%20%zz", "'%' at character 7");
  refused("https://example.org/a.png", "':' at character 5");
}

TEST(Base64, StopsAtTheLimit) {
  const std::string text(4000, 'A');  // 3000 bytes
  EXPECT_ERROR(decode_base64(text, kBytesMax), ErrorCode::resource_exhausted, {"1000 bytes"});
  EXPECT_EQ(decode_base64(text, 3000).value().size(), 3000U);
  EXPECT_ERROR(decode_base64(text, 2999), ErrorCode::resource_exhausted, {"2999 bytes"});
  EXPECT_ERROR(decode_base64("Zm8", 1), ErrorCode::resource_exhausted, {"1 bytes"});
}

TEST(DataUri, TypeAndBytes) {
  for (const std::string_view text : {"data:image/png;base64,Zm9v", "DATA:Image/PNG;Base64,Zm9v",
                                      "data:image/png;name=a.png;charset=utf-8;base64,Zm9v"}) {
    const EmbeddedMedia media = read_embedded_media(text, kBytesMax).value();
    EXPECT_EQ(media.declared_type, "image/png") << text;
    EXPECT_EQ(media.bytes, test::bytes_of("foo")) << text;
  }
  EXPECT_EQ(read_embedded_media("data:;base64,Zm9v", kBytesMax).value().declared_type, "");
  EXPECT_EQ(read_embedded_media("Zm9v", kBytesMax).value().bytes, test::bytes_of("foo"));
  EXPECT_TRUE(is_data_uri("dAtA:,"));
  EXPECT_FALSE(is_data_uri("data"));
  EXPECT_FALSE(is_data_uri("http://a/data:"));
}

TEST(DataUri, RefusesWhatIsNone) {
  const auto refused = [](std::string_view text, ErrorCode code, std::string_view part) {
    EXPECT_ERROR(read_embedded_media(text, kBytesMax), code, {part});
  };
  refused("data:image/png,%89PNG", ErrorCode::unsupported, "not base64");
  refused("data:base64,Zm9v", ErrorCode::unsupported, "not base64");
  refused("ftp://host/a.png", ErrorCode::invalid_argument, "a URL of another kind");
  refused("blob:Zm9v", ErrorCode::invalid_argument, "want data:image/png;base64,");
  refused("/home/me/cat.png", ErrorCode::invalid_argument, "want data:image/png;base64,");
  refused("data:image/png;base64", ErrorCode::invalid_argument, "without a comma");
  refused("data:" + std::string(300, 'a') + ";base64,Zm9v", ErrorCode::invalid_argument,
          "first 256 characters");
  refused("data:image/png;base64,", ErrorCode::invalid_argument, "no bytes");
  refused("data:image/png;base64, \n", ErrorCode::invalid_argument, "no bytes");
  refused("", ErrorCode::invalid_argument, "no bytes");
  refused("data:image/png;base64,data:", ErrorCode::invalid_argument, "':' at character 4");
}

}  // namespace
}  // namespace sluice
