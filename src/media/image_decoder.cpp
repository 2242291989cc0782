#include "media/image_decoder.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "media/bmp_file.h"
#include "media/encoder_size.h"
#include "media/picture_type.h"
#include "media/pixel_rows.h"
#include "media/vips_file.h"

namespace sluice {
namespace {

Result<PictureType> check_type(std::span<const std::byte> bytes, const PictureLimits& limits) {
  if (bytes.empty()) {
    return fail(ErrorCode::invalid_argument, "picture of 0 bytes");
  }
  if (bytes.size() > limits.encoded_bytes_max) {
    return fail(ErrorCode::resource_exhausted, fmt::format("picture of {} bytes, want at most {}",
                                                           bytes.size(), limits.encoded_bytes_max));
  }
  const std::optional<PictureType> type = sniff_picture_type(bytes);
  if (!type) {
    const std::string_view other = sniff_other_type(bytes);
    return fail(ErrorCode::unsupported,
                fmt::format("{}, want a PNG, JPEG, WebP, GIF or BMP picture",
                            other.empty() ? fmt::format("{} bytes of no known type", bytes.size())
                                          : std::string(other)));
  }
  return *type;
}

Result<void> check_size(PictureType type, PictureSize size, const PictureLimits& limits) {
  const std::string what =
      fmt::format("{} picture of {} x {} pixels", to_string(type), size.width, size.height);
  if (size.width < 1 || size.height < 1) {
    return fail(ErrorCode::invalid_argument, what + ": it is empty");
  }
  if (size.width > kPictureSideMax || size.height > kPictureSideMax) {
    return fail(ErrorCode::resource_exhausted,
                fmt::format("{}, want sides of at most {}", what, kPictureSideMax));
  }
  if (size.pixel_count() > limits.pixels_max) {
    return fail(ErrorCode::resource_exhausted,
                fmt::format("{} ({} in all), want at most {} in all", what, size.pixel_count(),
                            limits.pixels_max));
  }
  if (std::max(size.width, size.height) > kSideRatioMax * std::min(size.width, size.height)) {
    return fail(ErrorCode::invalid_argument,
                fmt::format("{}: one side is more than {} times the other", what, kSideRatioMax));
  }
  return {};
}

Result<VipsFile> open(std::span<const std::byte> bytes, PictureType type,
                      const PictureLimits& limits) {
  VipsFile file = SLUICE_TRY(VipsFile::open(bytes, type));
  SLUICE_TRY(check_size(type, file.stored_size(), limits));
  return file;
}

Result<BmpFile> open_bmp(std::span<const std::byte> bytes, const PictureLimits& limits) {
  BmpFile file = SLUICE_TRY(BmpFile::open(bytes));
  SLUICE_TRY(check_size(PictureType::bmp, file.size(), limits));
  return file;
}

}  // namespace

Result<Picture> decode_picture(std::span<const std::byte> bytes, const PictureLimits& limits) {
  const PictureType type = SLUICE_TRY(check_type(bytes, limits));
  if (type == PictureType::bmp) {
    return SLUICE_TRY(open_bmp(bytes, limits)).decode();
  }
  return SLUICE_TRY(open(bytes, type, limits)).decode();
}

Result<PictureSize> read_picture_size(std::span<const std::byte> bytes,
                                      const PictureLimits& limits) {
  const PictureType type = SLUICE_TRY(check_type(bytes, limits));
  if (type == PictureType::bmp) {
    return SLUICE_TRY(open_bmp(bytes, limits)).size();
  }
  const VipsFile file = SLUICE_TRY(open(bytes, type, limits));
  return Orientation(file.exif_orientation(), file.stored_size()).size();
}

}  // namespace sluice
