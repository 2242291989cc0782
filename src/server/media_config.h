// What the server reads of pictures and videos, and from where.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "media/image_decoder.h"

namespace sluice {

struct MediaConfig {
  std::int64_t items_max = 64;  // pictures and videos of one request, frames of lists included
  PictureLimits picture = {};   // of each; encoded_bytes_max holds for videos, too
  std::size_t request_bytes_max = std::size_t{256} << 20;  // encoded, of one request

  std::vector<std::string> domains = {};  // hosts whose http(s) URLs are fetched; none: no URL is
  std::filesystem::path root = {};        // below which file: URLs are read; empty: none is
};

}  // namespace sluice
