// A PNG, JPEG, WebP or GIF file opened by libvips: its header, then its rows from top to bottom.
// The only place that knows libvips. Private to media/.
//
// libvips is started at the first use, without operation cache and without a word to stderr. Rows
// are asked for, which it computes on the caller's thread; for WebP it keeps one helper. Its error
// texts lie in a buffer that all threads share, so ours are told from where decoding stopped
// instead.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "base/result.h"
#include "media/picture.h"
#include "media/picture_type.h"
#include "media/pixel_rows.h"

namespace sluice {

// Each scan of a progressive JPEG is a pass over the whole picture, however short its data.
inline constexpr std::size_t kJpegScansMax = 128;

class VipsFile {
 public:
  // Reads the header only. The bytes must outlive the object. Not for PictureType::bmp. Errors:
  // invalid_argument, unsupported, resource_exhausted (more than kJpegScansMax scans).
  static Result<VipsFile> open(std::span<const std::byte> bytes, PictureType type);
  VipsFile(VipsFile&&) noexcept;
  VipsFile& operator=(VipsFile&&) noexcept;
  ~VipsFile();

  PictureSize stored_size() const;
  int exif_orientation() const;

  // The whole picture, upright. Sizes must have been checked against limits before.
  Result<Picture> decode() const;

 private:
  struct State;
  explicit VipsFile(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace sluice
