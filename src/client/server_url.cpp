// parse_server_url of client/http_client.h.
#include <fmt/format.h>

#include <boost/url/parse.hpp>
#include <boost/url/url_view.hpp>
#include <charconv>
#include <cstdint>
#include <system_error>

#include "client/http_client.h"

namespace sluice {
namespace {

constexpr std::size_t kUrlBytesMax = 2048;

std::unexpected<Error> refuse(std::string_view text, std::string_view why) {
  return fail(ErrorCode::invalid_argument,
              fmt::format("'{}' is no server's URL: {}", text.substr(0, kUrlBytesMax), why));
}

bool is_port(std::string_view text) {
  std::uint16_t port = 0;  // a larger number is an error
  const char* end = text.data() + text.size();
  const auto read = std::from_chars(text.data(), end, port);
  return read.ec == std::errc() && read.ptr == end && port != 0;
}

}  // namespace

Result<ServerUrl> parse_server_url(std::string_view text) {
  constexpr std::string_view kWant = "want http://HOST[:PORT] or https://HOST[:PORT]";
  if (text.size() > kUrlBytesMax) {
    return refuse(text, fmt::format("it has more than {} bytes", kUrlBytesMax));
  }
  const auto parsed = boost::urls::parse_uri({text.data(), text.size()});
  if (!parsed) {
    return refuse(text, kWant);
  }
  const boost::urls::url_view& url = *parsed;
  ServerUrl result;
  result.tls = url.scheme_id() == boost::urls::scheme::https;
  if ((!result.tls && url.scheme_id() != boost::urls::scheme::http) || url.encoded_host().empty()) {
    return refuse(text, kWant);
  }
  if (url.has_userinfo() || url.has_query() || url.has_fragment()) {
    return refuse(text, "a user, a query or a fragment has no meaning here");
  }
  if (url.has_port() && !is_port(url.port())) {
    return refuse(text, "want a port from 1 to 65535");
  }
  const bool is_ipv6 = url.host_type() == boost::urls::host_type::ipv6;
  result.host = is_ipv6 ? url.host_address() : url.host();
  result.port = url.has_port() ? std::string(url.port()) : result.tls ? "443" : "80";
  result.path = url.encoded_path();
  const auto drop = [&result](std::string_view end) {
    if (result.path.ends_with(end)) {
      result.path.resize(result.path.size() - end.size());
    }
  };
  drop("/");
  drop("/v1");
  drop("/");
  return result;
}

}  // namespace sluice
