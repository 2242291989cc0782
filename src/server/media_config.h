// What the server reads of pictures and videos, and from where.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "media/image_decoder.h"
#include "media/video_file.h"

namespace sluice {

struct MediaConfig {
  std::int64_t items_max = 64;  // pictures and videos of one request, frames of lists included
  PictureLimits picture = {};   // of each
  VideoLimits video = {.decoded_pixels_max = std::int64_t{1} << 34};  // a minute or so of one core
  std::int64_t list_pixels_max = std::int64_t{1}
                                 << 27;  // of the frames of one list, decoded at once
  // Of all pictures of a request, before they are resized: what fills a context of 262,144 tokens,
  // and some seconds of one core.
  std::int64_t request_pixels_max = std::int64_t{1} << 28;
  std::size_t request_bytes_max = std::size_t{256} << 20;  // encoded, of one request
  std::size_t decoded_bytes_max = std::size_t{1} << 30;    // resized pixels of all requests

  std::vector<std::string> domains = {};  // hosts whose http(s) URLs are fetched; none: no URL is
  std::filesystem::path root = {};        // below which file: URLs are read; empty: none is
};

}  // namespace sluice
