// A file header of 14 bytes, a DIB header of 40 or more, three masks when it asks for them and does
// not hold them itself, the palette, then rows of whole 32-bit words, the lowest first.
// Little-endian.
#include "media/bmp_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <vector>

#include "media/pixel_rows.h"

namespace sluice {
namespace {

constexpr std::size_t kFileHeaderBytes = 14;
constexpr std::size_t kDibHeaderBytesMin = 40;
constexpr std::size_t kDibHeaderBytesMax = 124;
constexpr std::size_t kMasksAt = kFileHeaderBytes + 40;
constexpr std::size_t kDibWithAlphaMaskBytes = 56;
constexpr std::uint32_t kUncompressed = 0;
constexpr std::uint32_t kBitFields = 3;
constexpr std::size_t kPaletteEntryBytes = 4;
constexpr std::size_t kRgb = 3;

std::uint32_t read_u16(std::span<const std::byte> bytes, std::size_t at) {
  return std::to_integer<std::uint32_t>(bytes[at]) |
         (std::to_integer<std::uint32_t>(bytes[at + 1]) << 8U);
}

std::uint32_t read_u32(std::span<const std::byte> bytes, std::size_t at) {
  return read_u16(bytes, at) | (read_u16(bytes, at + 2) << 16U);
}

std::int64_t read_i32(std::span<const std::byte> bytes, std::size_t at) {
  return static_cast<std::int32_t>(read_u32(bytes, at));
}

std::unexpected<Error> broken(std::string_view what) {
  return fail(ErrorCode::invalid_argument, fmt::format("BMP picture: {}", what));
}

std::uint32_t bits_at(std::span<const std::byte> row, std::size_t x, std::uint32_t bits) {
  const std::size_t first_bit = x * bits;
  const auto byte = std::to_integer<std::uint32_t>(row[first_bit / 8]);
  return (byte >> (8U - bits - first_bit % 8)) & ((1U << bits) - 1U);
}

std::uint32_t pixel_at(std::span<const std::byte> row, std::size_t x, std::uint32_t bits) {
  switch (bits) {
    case 16:
      return read_u16(row, 2 * x);
    case 24:
      return read_u16(row, 3 * x) | (std::to_integer<std::uint32_t>(row[3 * x + 2]) << 16U);
    default:
      return read_u32(row, 4 * x);
  }
}

}  // namespace

Result<BmpFile> BmpFile::open(std::span<const std::byte> bytes) {
  if (bytes.size() < kFileHeaderBytes + kDibHeaderBytesMin) {
    return broken("its header is cut off");
  }
  const std::size_t header_bytes = read_u32(bytes, kFileHeaderBytes);
  if (header_bytes < kDibHeaderBytesMin) {
    return fail(ErrorCode::unsupported,
                fmt::format("BMP picture with a header of {} bytes, want {}", header_bytes,
                            kDibHeaderBytesMin));
  }
  if (header_bytes > kDibHeaderBytesMax || bytes.size() < kFileHeaderBytes + header_bytes) {
    return broken("its header is broken or cut off");
  }
  BmpFile file;
  file.bytes_ = bytes;
  file.pixels_at_ = read_u32(bytes, 10);
  const std::int64_t height = read_i32(bytes, 22);
  file.size_ = {.width = read_i32(bytes, 18), .height = height < 0 ? -height : height};
  file.top_down_ = height < 0;
  file.bits_ = read_u16(bytes, 28);
  const std::uint32_t compression = read_u32(bytes, 30);
  constexpr std::array kDepths{1U, 4U, 8U, 16U, 24U, 32U};
  if (std::ranges::find(kDepths, file.bits_) == kDepths.end()) {
    return broken(fmt::format("{} bits per pixel, want 1, 4, 8, 16, 24 or 32", file.bits_));
  }
  const bool has_masks = compression == kBitFields && file.bits_ >= 16;
  if (compression != kUncompressed && !has_masks) {
    return fail(ErrorCode::unsupported,
                fmt::format("BMP picture with compression {}, want none", compression));
  }
  if (file.bits_ <= 8) {
    SLUICE_TRY(file.read_palette(kFileHeaderBytes + header_bytes));
  } else if (has_masks) {
    SLUICE_TRY(file.read_masks());
  } else if (file.bits_ == 16) {
    file.channels_ = {Channel{10, 31}, Channel{5, 31}, Channel{0, 31}, Channel{}};
  } else {
    file.channels_ = {Channel{16, 255}, Channel{8, 255}, Channel{0, 255}, Channel{}};
  }
  return file;
}

Result<BmpFile::Channel> BmpFile::channel_of(std::uint32_t mask) {
  if (mask == 0) {
    return Channel{};
  }
  const auto shift = static_cast<std::uint32_t>(std::countr_zero(mask));
  const std::uint32_t value_max = mask >> shift;
  if (value_max > 255 || (value_max & (value_max + 1)) != 0) {
    return fail(
        ErrorCode::unsupported,
        fmt::format("BMP picture with the bit mask {:#x}, want up to 8 bits side by side", mask));
  }
  return Channel{.shift = shift, .value_max = value_max};
}

Result<void> BmpFile::read_masks() {
  const std::size_t header_bytes = read_u32(bytes_, kFileHeaderBytes);
  const std::size_t masks = header_bytes >= kDibWithAlphaMaskBytes ? kChannels : kChannels - 1;
  if (bytes_.size() < kMasksAt + masks * sizeof(std::uint32_t)) {
    return broken("its bit masks are cut off");
  }
  for (std::size_t i = 0; i < masks; ++i) {
    channels_[i] = SLUICE_TRY(channel_of(read_u32(bytes_, kMasksAt + i * sizeof(std::uint32_t))));
  }
  if (channels_[0].value_max == 0 || channels_[1].value_max == 0 || channels_[2].value_max == 0) {
    return broken("a bit mask of its colours is 0");
  }
  return {};
}

Result<void> BmpFile::read_palette(std::size_t at) {
  const std::size_t used = read_u32(bytes_, 46);
  const std::size_t count = used == 0 ? std::size_t{1} << bits_ : used;
  if (count > palette_.size() || at + count * kPaletteEntryBytes > bytes_.size()) {
    return broken(fmt::format("its palette of {} colours is broken or cut off", count));
  }
  for (std::size_t i = 0; i < count; ++i) {
    const std::byte* entry =
        bytes_.data() + at + i * kPaletteEntryBytes;  // blue, green, red, unused
    for (std::size_t c = 0; c < kRgb; ++c) {
      palette_[i][c] = std::to_integer<std::uint8_t>(entry[kRgb - 1 - c]);
    }
  }
  return {};
}

void BmpFile::decode_row(std::span<const std::byte> row, std::span<std::uint8_t> rgb) const {
  const std::size_t width = rgb.size() / kRgb;
  for (std::size_t x = 0; x < width; ++x) {
    std::uint8_t* out = rgb.data() + x * kRgb;
    if (bits_ <= 8) {
      std::ranges::copy(palette_[bits_at(row, x, bits_)], out);
      continue;
    }
    const std::uint32_t pixel = pixel_at(row, x, bits_);
    std::array<std::byte, kChannels> values{};
    for (std::size_t c = 0; c < kChannels; ++c) {
      const Channel& channel = channels_[c];
      const std::uint32_t value = (pixel >> channel.shift) & channel.value_max;
      values[c] = channel.value_max == 0 ? std::byte{255}
                                         : static_cast<std::byte>(value * 255U / channel.value_max);
    }
    to_rgb(values, SampleLayout::rgb_alpha, false, {out, kRgb});
  }
}

Result<Picture> BmpFile::decode() const {
  const auto width = static_cast<std::size_t>(size_.width);
  const auto height = static_cast<std::size_t>(size_.height);
  const std::size_t row_bytes = (width * bits_ + 31) / 32 * 4;
  if (pixels_at_ > bytes_.size() || (bytes_.size() - pixels_at_) / row_bytes < height) {
    return broken(fmt::format("{} x {} pixels of {} bits need {} bytes, {} are there", size_.width,
                              size_.height, bits_, row_bytes * height,
                              bytes_.size() - std::min(pixels_at_, bytes_.size())));
  }
  Picture picture{.size = size_, .pixels = std::vector<std::uint8_t>(width * height * kRgb)};
  for (std::size_t i = 0; i < height; ++i) {
    const std::size_t y = top_down_ ? i : height - 1 - i;
    decode_row(bytes_.subspan(pixels_at_ + i * row_bytes, row_bytes),
               std::span(picture.pixels).subspan(y * width * kRgb, width * kRgb));
  }
  return picture;
}

}  // namespace sluice
