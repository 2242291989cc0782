// From the bytes of a PNG, JPEG, WebP, GIF (first frame) or BMP file to an upright 8-bit RGB
// picture, by libvips and our own reader of BMP. Bytes come from strangers: the type is sniffed,
// every limit is checked against the header before a pixel is decoded, and data that ends early or
// is broken is an Error. What is equal to Pillow and what is not: docs/MEDIA.md.
//
// Threads: any number may decode at once; each decodes on its own thread (libvips keeps a helper
// for WebP).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/result.h"
#include "media/picture.h"

namespace sluice {

// What is decoded at all. Memory of one decode: up to 4 bytes a pixel beside the result (interlaced
// PNG, WebP, GIF), 6 for progressive JPEG.
struct PictureLimits {
  std::size_t encoded_bytes_max = std::size_t{50} << 20;
  std::int64_t pixels_max = std::int64_t{48} << 20;  // three times what the encoder can take
};

// Errors: unsupported (another kind of file, named if known), resource_exhausted (over a limit),
// invalid_argument (broken, cut off, empty, or sides further apart than kSideRatioMax).
Result<Picture> decode_picture(std::span<const std::byte> bytes, const PictureLimits& limits);

// The size decode_picture() would give, from the header alone; errors likewise.
Result<PictureSize> read_picture_size(std::span<const std::byte> bytes,
                                      const PictureLimits& limits);

}  // namespace sluice
