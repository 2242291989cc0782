// For tests: pictures as clients send them, and a server whose model sees.
#pragma once

#include <openssl/evp.h>

#include <cstdint>
#include <string>

#include "server/test_server.h"

namespace sluice {

// A BMP file of one colour.
inline std::string bmp_file(std::uint32_t width, std::uint32_t height, unsigned char grey = 128) {
  const std::uint32_t row = (width * 3 + 3) / 4 * 4;
  std::string file = "BM";
  const auto put = [&file](std::uint32_t value, int bytes) {
    for (int i = 0; i < bytes; ++i) {
      file += static_cast<char>((value >> (8 * i)) & 0xFFU);
    }
  };
  put(54 + row * height, 4);
  put(0, 4);
  put(54, 4);
  put(40, 4);
  put(width, 4);
  put(height, 4);
  put(1, 2);
  put(24, 2);
  for (int i = 0; i < 6; ++i) {
    put(0, 4);
  }
  return file + std::string(std::size_t{row} * height, static_cast<char>(grey));
}

inline std::string base64(const std::string& bytes) {
  std::string text((bytes.size() + 2) / 3 * 4 + 1, '\0');
  const int size = EVP_EncodeBlock(reinterpret_cast<unsigned char*>(text.data()),
                                   reinterpret_cast<const unsigned char*>(bytes.data()),
                                   static_cast<int>(bytes.size()));
  text.resize(static_cast<std::size_t>(size));
  return text;
}

inline std::string data_uri(const std::string& bytes, const std::string& type = "image/bmp") {
  return "data:" + type + ";base64," + base64(bytes);
}

class VisionServerTest : public ServerTest {
 protected:
  explicit VisionServerTest(std::int64_t context_max = 1024) : ServerTest(context_max) {}

  const ServedModel& served() const override {
    static const ServedModel loaded = [] {
      ServedModel model = load();
      model.vision = VisionModel{
          .placeholders = placeholders(),
          .preprocessor = {.picture = {.pixels_min = 32 * 32, .pixels_max = 512 * 512}}};
      return model;
    }();
    return loaded;
  }

  static PlaceholderIds placeholders() {
    return {.image = model().tokenizer.token_id("<|image_pad|>").value(),
            .video = model().tokenizer.token_id("<|video_pad|>").value()};
  }
};

}  // namespace sluice
