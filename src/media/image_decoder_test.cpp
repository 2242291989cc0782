#include "media/image_decoder.h"

#include <gtest/gtest.h>

#include <chrono>
#include <random>
#include <thread>

#include "media/data_uri.h"
#include "media/encoder_size.h"
#include "media/test_pictures.h"

namespace sluice {
namespace {

using test::Bytes;

constexpr PictureLimits kLimits{};

boost::json::array known_pictures() {
  return test::read_json(test::testdata() / "pictures.json").as_array();
}

PictureSize size_in(const boost::json::value& entry) {
  return {.width = entry.at("width").as_int64(), .height = entry.at("height").as_int64()};
}

TEST(ImageDecoder, EqualsPillow) {
  const boost::json::array pictures = known_pictures();
  ASSERT_GE(pictures.size(), 40U);
  for (const boost::json::value& entry : pictures) {
    const std::string name(entry.at("file").as_string());
    const Result<Picture> picture = decode_picture(test::read_picture_file(name), kLimits);
    ASSERT_TRUE(picture.has_value()) << name << ": " << picture.error().message;
    EXPECT_EQ(picture->size, size_in(entry)) << name;
    const Bytes want = decode_base64(entry.at("rgb").as_string(), std::size_t{1} << 20).value();
    EXPECT_EQ(test::Bytes(std::as_bytes(std::span(picture->pixels)).begin(),
                          std::as_bytes(std::span(picture->pixels)).end()),
              want)
        << name;
  }
}

TEST(ImageDecoder, SizeFromTheHeader) {
  for (const boost::json::value& entry : known_pictures()) {
    const std::string name(entry.at("file").as_string());
    const Result<PictureSize> size = read_picture_size(test::read_picture_file(name), kLimits);
    ASSERT_TRUE(size.has_value()) << name << ": " << size.error().message;
    EXPECT_EQ(*size, size_in(entry)) << name;
  }
}

// A cut is seen, or what was cut off does not belong to the picture: the second frame of an
// animation, a mark that only says that nothing follows.
TEST(ImageDecoder, CutOffDataIsAnError) {
  std::size_t whole_count = 0;
  for (const boost::json::value& entry : known_pictures()) {
    const std::string name(entry.at("file").as_string());
    const Bytes whole = test::read_picture_file(name);
    const Picture want = decode_picture(whole, kLimits).value();
    for (std::size_t part = 0; part < 20; ++part) {
      const std::span<const std::byte> cut = std::span(whole).first(whole.size() * part / 20);
      const Result<Picture> picture = decode_picture(cut, kLimits);
      if (picture) {
        ++whole_count;
        EXPECT_EQ(picture->pixels, want.pixels) << name << " cut to " << cut.size() << " bytes";
      } else {
        EXPECT_FALSE(picture.error().message.empty());
      }
    }
  }
  EXPECT_LE(whole_count, 10U);
}

TEST(ImageDecoder, BrokenBytesGiveAPictureOfThatSizeOrAnError) {
  std::minstd_rand random(1);
  for (const boost::json::value& entry : known_pictures()) {
    const std::string name(entry.at("file").as_string());
    for (int round = 0; round < 20; ++round) {
      Bytes bytes = test::read_picture_file(name);
      for (int change = 0; change < 4; ++change) {
        bytes[random() % bytes.size()] = static_cast<std::byte>(random());
      }
      const PictureLimits small{.encoded_bytes_max = 1 << 20, .pixels_max = 1 << 20};
      const Result<PictureSize> size = read_picture_size(bytes, small);
      const Result<Picture> picture = decode_picture(bytes, small);
      if (picture) {
        ASSERT_TRUE(size.has_value());
        EXPECT_EQ(*size, picture->size);
        EXPECT_LE(picture->size.pixel_count(), 1 << 20);
        EXPECT_EQ(picture->pixels.size(), static_cast<std::size_t>(size->pixel_count()) * 3);
      } else {
        EXPECT_FALSE(picture.error().message.empty());
      }
    }
  }
}

TEST(ImageDecoder, RandomBytesBehindEverySignature) {
  std::minstd_rand random(2);
  for (const std::string_view signature :
       {std::string_view("\x89PNG\r\n\x1a\n"), std::string_view("\xff\xd8\xff\xe0"),
        std::string_view("RIFF\x30\0\0\0WEBPVP8 ", 16), std::string_view("GIF89a"),
        std::string_view("BM"), std::string_view("")}) {
    for (int round = 0; round < 50; ++round) {
      Bytes bytes = test::bytes_of(signature);
      for (std::size_t i = random() % 300; i > 0; --i) {
        bytes.push_back(static_cast<std::byte>(random() >> 7U));
      }
      const PictureLimits small{.encoded_bytes_max = 1 << 20, .pixels_max = 1 << 16};
      const Result<Picture> picture = decode_picture(bytes, small);
      if (!picture) {
        EXPECT_FALSE(picture.error().message.empty());
      }
    }
  }
}

TEST(ImageDecoder, NamesOtherKindsOfFiles) {
  const auto refused = [](std::string_view text, std::string_view part) {
    EXPECT_ERROR(decode_picture(test::bytes_of(text), kLimits), ErrorCode::unsupported,
                 {part, "want a PNG, JPEG, WebP, GIF or BMP picture"});
    EXPECT_ERROR(read_picture_size(test::bytes_of(text), kLimits), ErrorCode::unsupported, {part});
  };
  refused("<svg xmlns='http://www.w3.org/2000/svg'/>", "an SVG drawing");
  refused("%PDF-1.7", "a PDF document");
  refused(std::string_view("\0\0\0\x18"
                           "ftypheic",
                           12),
          "a HEIC picture");
  refused(std::string_view("\0\0\0\x18"
                           "ftypisom",
                           12),
          "an MP4 video");
  refused(std::string_view("II*\0", 4), "a TIFF picture");
  refused("push graphic-context", "20 bytes of no known type");
  refused("P6 1 1 255 abc", "no known type");
  EXPECT_ERROR(decode_picture({}, kLimits), ErrorCode::invalid_argument, {"0 bytes"});
}

// The type is what the bytes are: nothing else is asked.
TEST(ImageDecoder, LimitsOfTheFile) {
  const Bytes png = test::read_picture_file("rgb.png");
  EXPECT_ERROR(decode_picture(png, {.encoded_bytes_max = png.size() - 1}),
               ErrorCode::resource_exhausted, {"bytes, want at most"});
  EXPECT_TRUE(decode_picture(png, {.encoded_bytes_max = png.size()}).has_value());
  EXPECT_ERROR(decode_picture(png, {.pixels_max = 37 * 23 - 1}), ErrorCode::resource_exhausted,
               {"PNG picture of 37 x 23 pixels", "want at most 850"});
  EXPECT_TRUE(decode_picture(png, {.pixels_max = 37 * 23}).has_value());
}

Bytes claimed_gif(std::string_view sides) {
  Bytes gif = test::bytes_of("GIF89a");
  const Bytes rest = test::bytes_of(sides);
  gif.insert(gif.end(), rest.begin(), rest.end());
  gif.insert(gif.end(), 20, std::byte{0});
  return gif;
}

// JPEG: SOI, a frame of one component with these sides, the beginning of a scan.
Bytes claimed_jpeg(std::string_view height_and_width) {
  std::string text("\xff\xd8\xff\xc0\0\x0b\x08", 7);
  text += height_and_width;
  text += std::string_view("\x01\x01\x11\0\xff\xda\0\x08\x01\x01\0\0\x3f\0", 14);
  return test::bytes_of(text);
}

Bytes claimed_bmp(std::uint32_t width, std::uint32_t height) {
  Bytes bmp = test::read_picture_file("rgb.bmp");
  for (unsigned byte = 0; byte < 4; ++byte) {
    bmp[18 + byte] = static_cast<std::byte>((width >> (8 * byte)) & 0xffU);
    bmp[22 + byte] = static_cast<std::byte>((height >> (8 * byte)) & 0xffU);
  }
  return bmp;
}

// Some bytes that claim to be gigapixels: refused by the header, within a blink.
TEST(ImageDecoder, BombsAreRefusedByTheirHeader) {
  const auto start = std::chrono::steady_clock::now();
  const auto too_large = [](const Bytes& bytes, std::string_view part) {
    EXPECT_ERROR(decode_picture(bytes, kLimits), ErrorCode::resource_exhausted, {part});
    EXPECT_ERROR(read_picture_size(bytes, kLimits), ErrorCode::resource_exhausted, {part});
  };
  too_large(test::claimed_png({.width = 65500, .height = 65500}), "65500 x 65500");
  too_large(test::claimed_png({.width = 65500, .height = 65500, .interlaced = std::byte{1}}),
            "65500 x 65500");
  too_large(test::claimed_png({.width = 50000, .height = 2000}), "100000000 in all");
  too_large(test::claimed_png({.width = 1000000, .height = 1000000}), "sides of at most");
  too_large(claimed_jpeg("\xff\xdc\xff\xdc"), "65500 x 65500");
  too_large(claimed_bmp(65500, 65500), "65500 x 65500");
  too_large(claimed_bmp(65500, static_cast<std::uint32_t>(-65500)), "65500 x 65500");
  too_large(claimed_bmp(0x7fffffff, 0x80000000U), "2147483647 x 2147483648");
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(5));
}

TEST(ImageDecoder, EmptyAndThinPictures) {
  for (const Bytes& bytes :
       {test::claimed_png({.width = 0, .height = 5}), test::claimed_png({.width = 5, .height = 0}),
        claimed_gif({"\0\0\5\0", 4}), claimed_jpeg({"\0\0\0\5", 4}), claimed_jpeg({"\0\5\0\0", 4}),
        claimed_bmp(0, 5), claimed_bmp(5, 0), claimed_bmp(0xffffffffU, 5)}) {
    EXPECT_FALSE(decode_picture(bytes, kLimits).has_value());
    EXPECT_FALSE(read_picture_size(bytes, kLimits).has_value());
  }
  EXPECT_ERROR(decode_picture(test::claimed_png({.width = 1, .height = 201}), kLimits),
               ErrorCode::invalid_argument, {"1 x 201", "200 times"});
}

TEST(ImageDecoder, JpegsOfTooManyScans) {
  Bytes jpeg = test::read_picture_file("progressive.jpg");
  const std::array scan{std::byte{0xff}, std::byte{0xda}, std::byte{0}, std::byte{0}};
  jpeg.resize(jpeg.size() - 2);  // the end mark
  for (int i = 0; i < 130; ++i) {
    jpeg.insert(jpeg.end(), scan.begin(), scan.end());
  }
  EXPECT_ERROR(decode_picture(jpeg, kLimits), ErrorCode::resource_exhausted,
               {"scans, want at most 128"});
}

// Headers within the limits, data that is not there.
TEST(ImageDecoder, ClaimsWithoutData) {
  for (const std::byte interlaced : {std::byte{0}, std::byte{1}}) {
    EXPECT_ERROR(
        decode_picture(test::claimed_png({.width = 3000, .height = 3000, .interlaced = interlaced}),
                       kLimits),
        ErrorCode::invalid_argument, {"PNG picture of 3000 x 3000", "broken or cut off"});
  }
  EXPECT_ERROR(decode_picture(claimed_bmp(3000, 3000), kLimits), ErrorCode::invalid_argument,
               {"need 27000000 bytes"});
  EXPECT_FALSE(decode_picture(claimed_jpeg("\x0b\xb8\x0b\xb8"), kLimits).has_value());
  EXPECT_FALSE(decode_picture(claimed_gif("\xb8\x0b\xb8\x0b"), kLimits).has_value());
}

TEST(ImageDecoder, ManyThreads) {
  const Bytes jpeg = test::read_picture_file("half_colour.jpg");
  const Bytes broken(jpeg.begin(), jpeg.begin() + 400);
  const Picture want = decode_picture(jpeg, kLimits).value();
  std::vector<std::jthread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (int round = 0; round < 25; ++round) {
        EXPECT_EQ(decode_picture(jpeg, kLimits).value().pixels, want.pixels);
        EXPECT_FALSE(decode_picture(broken, kLimits).has_value());
      }
    });
  }
}

}  // namespace
}  // namespace sluice
