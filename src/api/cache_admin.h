// The JSON of cache administration: GET /v1/cache, POST /v1/cache/flush.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "api/api_error.h"
#include "api/cache_pins.h"

namespace sluice {

// What is pinned goes too, unless kept.
struct FlushRequest {
  std::optional<std::string> cache_salt = std::nullopt;  // none: everything
  bool keep_pins = false;
};

// An empty body asks for everything.
ApiResult<FlushRequest> parse_flush_request(std::string body);

std::string flush_reply_json(std::int64_t freed_tokens, std::size_t freed_bytes);

struct CacheReport {
  std::int64_t entries = 0;  // prefixes one can go on from
  std::int64_t tokens = 0;   // whose keys and values are stored
  std::size_t bytes = 0;
  std::size_t bytes_max = 0;
  std::int64_t hit_tokens = 0;  // since the start, as the next
  std::int64_t query_tokens = 0;
  std::vector<PinReport> pinned = {};
};

std::string cache_report_json(const CacheReport& report);

}  // namespace sluice
