// Who may ask: API keys, the Host header, and which web pages may read replies (CORS).
//
// Thread rule: const after construction.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/api_error.h"
#include "base/result.h"
#include "server/http_message.h"
#include "server/server_config.h"

namespace sluice {

class Access {
 public:
  // Error invalid_argument: the origin "*" without any key; an empty key.
  static Result<Access> create(const ServerConfig& config, bool loopback_only);

  // Without a key and bound to loopback, only loopback names reach the server: a foreign web page
  // could otherwise point its own name at 127.0.0.1.
  std::optional<ApiError> check_host(const HttpRequest& request) const;

  // Bearer, x-api-key or api-key; compared without telling by time how much was right.
  std::optional<ApiError> check_key(const HttpRequest& request) const;

  // An admin key; where none is set, a client on this machine that speaks for itself (no proxy, no
  // foreign web page) and has a key if there are any.
  std::optional<ApiError> check_admin(const HttpRequest& request) const;

  bool has_keys() const { return !config_->api_keys.empty(); }
  bool public_info() const { return config_->public_info; }

  // The headers that let an allowed page read the reply.
  void add_cors(const HttpRequest& request, HttpResponse& response) const;

  // The answer to OPTIONS.
  HttpResponse preflight(const HttpRequest& request) const;

 private:
  Access(const ServerConfig& config, bool loopback_only)
      : config_(&config), loopback_only_(loopback_only) {}

  bool origin_allowed(std::string_view origin) const;

  const ServerConfig* config_;
  bool loopback_only_;
};

// The one of `keys` that the request presents; empty when none.
std::string_view presented_key(const std::vector<std::string>& keys, const HttpRequest& request);

// "localhost", "127.x.y.z", "::1" with or without brackets.
bool is_loopback_host(std::string_view host);

// "example.org:80" -> "example.org", "[::1]:80" -> "::1".
std::string_view host_without_port(std::string_view host);

bool equal_in_constant_time(std::string_view secret, std::string_view given);

}  // namespace sluice
