// Windows bitmaps without compression: 1, 4 and 8 bits with a palette, 16, 24 and 32 bits, also
// with bit masks. libvips leaves BMP to ImageMagick, which is no reader for bytes of strangers; the
// format is a header and rows. Private to media/.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "base/result.h"
#include "media/picture.h"

namespace sluice {

class BmpFile {
 public:
  // Reads the header only. The bytes must outlive the object. Errors: invalid_argument (broken),
  // unsupported (compressed, or a header of OS/2).
  static Result<BmpFile> open(std::span<const std::byte> bytes);

  PictureSize size() const { return size_; }

  // size() must have been checked against limits before.
  Result<Picture> decode() const;

 private:
  // Where the bits of a channel are: (pixel >> shift) & value_max; value_max 0: no such channel.
  struct Channel {
    std::uint32_t shift = 0;
    std::uint32_t value_max = 0;
  };
  static constexpr std::size_t kChannels = 4;  // red, green, blue, alpha

  Result<void> read_masks();
  Result<void> read_palette(std::size_t at);
  static Result<Channel> channel_of(std::uint32_t mask);
  void decode_row(std::span<const std::byte> row, std::span<std::uint8_t> rgb) const;

  std::span<const std::byte> bytes_;
  PictureSize size_;
  bool top_down_ = false;
  std::uint32_t bits_ = 0;
  std::size_t pixels_at_ = 0;
  std::array<Channel, kChannels> channels_{};               // of 16, 24 and 32 bits
  std::array<std::array<std::uint8_t, 3>, 256> palette_{};  // RGB, of 1, 4 and 8 bits
};

}  // namespace sluice
