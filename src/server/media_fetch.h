// Pictures and videos behind http(s) URLs, for hosts that an operator has named. A URL comes from a
// stranger who may want to see this machine's network through us, so of every hop:
//
//   host    one of the operator's, before any name is resolved
//   address every one its name stands for is public; one of exactly these is dialled
//   answer  a redirect is a new hop (at most kRedirectsMax); else 200 and at most bytes_max
//
// One time limit holds for all of it. Certificates are verified against the system's store.
// Thread rule: any thread; blocks it.
#pragma once

#include <boost/asio/ip/address.hpp>
#include <chrono>
#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "server/public_address.h"

namespace sluice {

inline constexpr int kRedirectsMax = 3;
inline constexpr std::chrono::seconds kFetchSecondsMax{10};

struct FetchRules {
  std::span<const std::string> domains = {};  // host names, in any case
  std::size_t bytes_max = 0;
  std::chrono::milliseconds time_max = kFetchSecondsMax;
  std::function<bool()> gives_up = {};  // looked at every 100 ms
  // For tests: other name servers, other networks.
  std::function<bool(const boost::asio::ip::address&)> may_dial = is_public_address;
  std::function<std::vector<boost::asio::ip::address>(const std::string& host)> resolve = {};
};

// Whether the text is an http or https URL.
bool is_web_url(std::string_view text);

// Errors: unsupported (the rules forbid a hop), resource_exhausted (too large), deadline,
// cancelled, io (nobody answers, or not with 200, or without a valid certificate).
Result<std::vector<std::byte>> fetch_media(const std::string& url, const FetchRules& rules);

}  // namespace sluice
