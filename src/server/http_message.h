// One HTTP request and one reply, as the handlers see them.
#pragma once

#include <atomic>
#include <boost/beast/http/fields.hpp>
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace sluice {

struct HttpRequest {
  std::string method;  // "GET"
  std::string target;  // as sent
  std::string path;    // without scheme, host, query and trailing slashes; percent-decoded
  boost::beast::http::fields headers;
  std::string body;
  bool from_loopback = false;                           // sent from this machine
  std::string id;                                       // the client's X-Request-Id, or one of ours
  std::chrono::steady_clock::time_point received = {};  // when it was complete
  // Set once nobody waits for the answer any more. Null where that makes no difference.
  std::shared_ptr<const std::atomic<bool>> gone = nullptr;

  // The value of a header, or empty.
  std::string_view header(std::string_view name) const;
};

struct HttpResponse {
  int status = 200;
  std::vector<std::pair<std::string, std::string>> headers = {};
  std::string body = {};
  std::string content_type = "application/json";  // empty: no body, no such header
};

// The path of a request target: "/v1/models/?a=b" -> "/v1/models". Root is "/".
std::string path_of_target(std::string_view target);

// `value` if it can be sent as a request id: 1 to 128 printable characters. Otherwise a new one.
std::string request_id_from(std::string_view value);

// `prefix` and 128 random bits.
std::string random_id(std::string_view prefix);

// The head of a reply up to and including the empty line. Control characters in values become
// spaces, so that no value can end its header.
std::string head_text(const HttpResponse& response, int http_version, bool keep_alive,
                      std::string_view framing_header);

std::string_view reason_phrase(int status);

// Whether a Content-Encoding is gzip.
bool is_gzip(std::string_view encoding);

// ASCII without case.
bool equal_ignoring_case(std::string_view a, std::string_view b);

}  // namespace sluice
