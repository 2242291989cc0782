#include "api/cache_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>
#include <cmath>
#include <utility>

#include "api/fields/json_fields.h"

namespace sluice {
namespace {

bool is_allowed(char character) {
  return (character >= 'a' && character <= 'z') || (character >= 'A' && character <= 'Z') ||
         (character >= '0' && character <= '9') || character == '.' || character == '_' ||
         character == '-';
}

}  // namespace

bool is_cache_file_name(std::string_view name) {
  return !name.empty() && name.size() <= kCacheFileNameBytesMax &&
         std::ranges::all_of(name, is_allowed) && name != "." && name != "..";
}

ApiResult<CacheFileRequest> parse_cache_file_request(std::string body) {
  CacheFileRequest request;
  auto ignored = read_body(std::move(body), [&request](JsonFields& fields) {
    const auto name = fields.string("name");
    if (!name) {
      fields.report().fail(ApiErrorKind::missing_parameter, "name is required", "name");
    } else if (!is_cache_file_name(*name)) {
      fields.report().fail(
          ApiErrorKind::invalid_value,
          fmt::format("name is '{}' ({} bytes), want {}", name->substr(0, kCacheFileNameBytesMax),
                      name->size(), kCacheFileNameRule),
          "name");
    } else {
      request.name = *name;
    }
  });
  if (!ignored) {
    return std::unexpected(ignored.error());
  }
  request.ignored = std::move(*ignored);
  return request;
}

std::string cache_file_report_json(const CacheFileReport& report) {
  const double ms = std::round(report.ms * 1000.0) / 1000.0;
  return boost::json::serialize(
      boost::json::object{{"tokens", report.tokens}, {"bytes", report.bytes}, {"ms", ms}});
}

}  // namespace sluice
