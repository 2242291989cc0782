// The JSON of cache files: POST /v1/cache/save, POST /v1/cache/load.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "api/api_error.h"

namespace sluice {

inline constexpr std::size_t kCacheFileNameBytesMax = 64;
inline constexpr std::string_view kCacheFileNameRule =
    "1 to 64 of the characters A-Z a-z 0-9 . _ -, and neither . nor ..";

// A name that cannot lead out of a folder.
bool is_cache_file_name(std::string_view name);

struct CacheFileRequest {
  std::string name;
  std::vector<std::string> ignored;
};

ApiResult<CacheFileRequest> parse_cache_file_request(std::string body);

struct CacheFileReport {
  std::int64_t tokens = 0;
  std::size_t bytes = 0;
  double ms = 0.0;
};

std::string cache_file_report_json(const CacheFileReport& report);

}  // namespace sluice
