// Shared by the tests of media/: the files of testdata/, hand-made hostile ones, and what an Error
// must say. Not part of the library.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <initializer_list>
#include <iterator>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <boost/json/parse.hpp>
#include <boost/json/value.hpp>

#include "base/check.h"
#include "base/result.h"
#include "base/test_errors.h"
#include "media/picture.h"

namespace sluice::test {

using Bytes = std::vector<std::byte>;

inline std::filesystem::path testdata() {
  return std::filesystem::path(SLUICE_SOURCE_DIR) / "src" / "media" / "testdata";
}

inline Bytes read_bytes(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  SLUICE_CHECK(file.good());
  const std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  const auto* data = reinterpret_cast<const std::byte*>(text.data());
  return {data, data + text.size()};
}

inline Bytes read_picture_file(std::string_view name) {
  return read_bytes(testdata() / "pictures" / name);
}

inline boost::json::value read_json(const std::filesystem::path& path) {
  const Bytes bytes = read_bytes(path);
  return boost::json::parse({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
}

inline Bytes bytes_of(std::string_view text) {
  const auto* data = reinterpret_cast<const std::byte*>(text.data());
  return {data, data + text.size()};
}

// A picture whose every byte is a multiplicative hash of its index (make_pictures.py has the same).
inline Picture formula_picture(PictureSize size) {
  constexpr std::uint32_t kFactor = 2654435761U;
  Picture picture{.size = size, .pixels = {}};
  picture.pixels.resize(static_cast<std::size_t>(size.pixel_count()) * 3);
  std::uint32_t value = 0;
  for (std::uint8_t& byte : picture.pixels) {
    value += kFactor;
    byte = static_cast<std::uint8_t>(value >> 24U);
  }
  return picture;
}

inline void append_u32_big(Bytes* bytes, std::uint32_t value) {
  for (const unsigned shift : {24U, 16U, 8U, 0U}) {
    bytes->push_back(static_cast<std::byte>((value >> shift) & 0xffU));
  }
}

inline std::uint32_t crc_of(std::span<const std::byte> bytes) {
  std::uint32_t crc = 0xffffffffU;
  for (const std::byte byte : bytes) {
    crc ^= std::to_integer<std::uint32_t>(byte);
    for (int bit = 0; bit < 8; ++bit) {
      crc = (crc >> 1U) ^ ((crc & 1U) != 0 ? 0xedb88320U : 0U);
    }
  }
  return ~crc;
}

inline void append_chunk(Bytes* png, std::string_view kind, const Bytes& body) {
  append_u32_big(png, static_cast<std::uint32_t>(body.size()));
  Bytes checked = bytes_of(kind);
  checked.insert(checked.end(), body.begin(), body.end());
  png->insert(png->end(), checked.begin(), checked.end());
  append_u32_big(png, crc_of(checked));
}

struct PngClaim {
  std::uint32_t width = 1;
  std::uint32_t height = 1;
  std::byte depth{8};
  std::byte colour_type{2};
  std::byte interlaced{0};
};

// A PNG with a valid header and hardly any data.
inline Bytes claimed_png(const PngClaim& claim) {
  Bytes png = bytes_of("\x89PNG\r\n\x1a\n");
  Bytes header;
  append_u32_big(&header, claim.width);
  append_u32_big(&header, claim.height);
  const std::array rest{claim.depth, claim.colour_type, std::byte{0}, std::byte{0},
                        claim.interlaced};
  header.insert(header.end(), rest.begin(), rest.end());
  append_chunk(&png, "IHDR", header);
  append_chunk(&png, "IDAT", Bytes{std::byte{0x78}, std::byte{0x9c}, std::byte{0x63}});
  append_chunk(&png, "IEND", {});
  return png;
}

}  // namespace sluice::test
