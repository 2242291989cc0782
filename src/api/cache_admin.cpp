#include "api/cache_admin.h"

#include <fmt/format.h>

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>
#include <utility>

#include "api/fields/generation_fields.h"
#include "api/fields/json_fields.h"

namespace sluice {
namespace {

namespace json = boost::json;

// There is one tier so far.
json::object per_tier(std::size_t device) {
  return json::object{{"device", device}, {"host", 0}, {"disk", 0}};
}

FlushRequest read_flush(JsonFields& body) {
  FieldReport& report = body.report();
  const std::string scope = body.string("scope").value_or("all");
  FlushRequest request{.cache_salt = body.string("cache_salt"), .keep_pins = scope == "unpinned"};
  if (scope == "salt") {
    if (!request.cache_salt) {
      report.fail(ApiErrorKind::missing_parameter, "cache_salt is required with scope \"salt\"",
                  "cache_salt");
    } else if (request.cache_salt->size() > kCacheSaltBytesMax) {
      report.fail(ApiErrorKind::invalid_value,
                  fmt::format("cache_salt has {} bytes, want at most {}",
                              request.cache_salt->size(), kCacheSaltBytesMax),
                  "cache_salt");
    }
  } else if (scope != "all" && scope != "unpinned") {
    report.fail(ApiErrorKind::invalid_value, "scope is none of \"all\", \"unpinned\" and \"salt\"",
                "scope");
  } else if (request.cache_salt) {
    report.fail(ApiErrorKind::invalid_value, "cache_salt goes with scope \"salt\" only",
                "cache_salt");
  }
  return request;
}

}  // namespace

ApiResult<FlushRequest> parse_flush_request(std::string body) {
  if (body.empty()) {
    return FlushRequest{};
  }
  FlushRequest request;
  const auto ignored =
      read_body(std::move(body), [&](JsonFields& fields) { request = read_flush(fields); });
  if (!ignored) {
    return std::unexpected(ignored.error());
  }
  return request;
}

std::string flush_reply_json(std::int64_t freed_tokens, std::size_t freed_bytes) {
  return json::serialize(
      json::object{{"freed_tokens", freed_tokens}, {"freed_bytes", freed_bytes}});
}

std::string cache_report_json(const CacheReport& report) {
  const double rate = report.query_tokens == 0 ? 0.0
                                               : static_cast<double>(report.hit_tokens) /
                                                     static_cast<double>(report.query_tokens);
  json::array pinned;
  for (const PinReport& pin : report.pinned) {
    pinned.push_back(pin_object(pin));
  }
  return json::serialize(json::object{{"entries", report.entries},
                                      {"tokens", report.tokens},
                                      {"bytes", per_tier(report.bytes)},
                                      {"limit_bytes", per_tier(report.bytes_max)},
                                      {"hit_rate", rate},
                                      {"hit_tokens", report.hit_tokens},
                                      {"query_tokens", report.query_tokens},
                                      {"pinned", std::move(pinned)}});
}

}  // namespace sluice
