#include "server/access.h"

#include <algorithm>
#include <array>
#include <boost/asio/ip/address.hpp>

namespace sluice {
namespace {

std::array<std::string_view, 3> key_headers(const HttpRequest& request) {
  constexpr std::string_view kBearer = "Bearer ";
  std::string_view bearer = request.header("Authorization");
  if (equal_ignoring_case(bearer.substr(0, kBearer.size()), kBearer)) {
    bearer.remove_prefix(kBearer.size());
  }
  return {bearer, request.header("x-api-key"), request.header("api-key")};
}

}  // namespace

Result<Access> Access::create(const ServerConfig& config, bool loopback_only) {
  const auto& origins = config.cors_origins;
  if (config.api_keys.empty() && std::find(origins.begin(), origins.end(), "*") != origins.end()) {
    return fail(ErrorCode::invalid_argument,
                "the CORS origin * needs an API key: any web page could use the server otherwise",
                "cors_origins");
  }
  for (const auto* keys : {&config.api_keys, &config.admin_keys}) {
    if (std::ranges::find(*keys, std::string()) != keys->end()) {
      return fail(ErrorCode::invalid_argument, "an API key is empty", "api_keys");
    }
  }
  return Access(config, loopback_only);
}

std::optional<ApiError> Access::check_host(const HttpRequest& request) const {
  const std::string_view host = host_without_port(request.header("Host"));
  if (!loopback_only_ || has_keys() || host.empty() || is_loopback_host(host)) {
    return std::nullopt;
  }
  const auto& allowed = config_->allowed_hosts;
  const bool listed = std::any_of(allowed.begin(), allowed.end(), [&](const std::string& name) {
    return equal_ignoring_case(name, host);
  });
  if (listed) {
    return std::nullopt;
  }
  return ApiError{ApiErrorKind::forbidden,
                  "the Host header names neither this machine nor an allowed host", ""};
}

std::optional<ApiError> Access::check_key(const HttpRequest& request) const {
  if (!has_keys() || !presented_key(config_->api_keys, request).empty()) {
    return std::nullopt;
  }
  const auto values = key_headers(request);
  const bool given =
      std::ranges::any_of(values, [](std::string_view value) { return !value.empty(); });
  return ApiError{ApiErrorKind::unauthorized,
                  given ? "Incorrect API key provided"  // LiteLLM looks for OpenAI's words
                        : "an API key is required: Authorization: Bearer, x-api-key or api-key",
                  ""};
}

std::optional<ApiError> Access::check_admin(const HttpRequest& request) const {
  const std::string_view origin = request.header("Origin");
  if (!origin.empty() && !origin_allowed(origin)) {
    return ApiError{ApiErrorKind::forbidden, "this web page may not administer the server", ""};
  }
  if (!config_->admin_keys.empty()) {
    const bool admitted = !presented_key(config_->admin_keys, request).empty();
    return admitted ? std::nullopt
                    : std::optional(ApiError{ApiErrorKind::forbidden,
                                             "this path needs the admin key: Authorization: "
                                             "Bearer, x-api-key or api-key",
                                             ""});
  }
  const bool forwarded =
      !request.header("X-Forwarded-For").empty() || !request.header("Forwarded").empty();
  if (!request.from_loopback || forwarded) {
    return ApiError{ApiErrorKind::forbidden,
                    "without an admin key this path is for clients on this machine only", ""};
  }
  return check_key(request);
}

std::string_view presented_key(const std::vector<std::string>& keys, const HttpRequest& request) {
  std::string_view found;
  for (const std::string_view value : key_headers(request)) {
    for (const std::string& key : keys) {
      found = equal_in_constant_time(key, value) ? std::string_view(key) : found;
    }
  }
  return found;
}

void Access::add_cors(const HttpRequest& request, HttpResponse& response) const {
  const std::string_view origin = request.header("Origin");
  if (origin.empty()) {
    return;
  }
  response.headers.emplace_back("Vary", "Origin");
  if (!origin_allowed(origin)) {
    return;
  }
  response.headers.emplace_back("Access-Control-Allow-Origin", origin);
  response.headers.emplace_back("Access-Control-Expose-Headers",
                                "x-request-id, request-id, retry-after, x-ignored-params, "
                                "x-served-model, x-sluice-reuse");
}

HttpResponse Access::preflight(const HttpRequest& request) const {
  HttpResponse response{.status = 204, .content_type = ""};
  const std::string_view origin = request.header("Origin");
  if (origin.empty() || !origin_allowed(origin)) {
    return response;
  }
  response.headers.emplace_back("Access-Control-Allow-Methods", "GET,POST,DELETE,OPTIONS");
  const std::string_view wanted = request.header("Access-Control-Request-Headers");
  if (!wanted.empty()) {
    response.headers.emplace_back("Access-Control-Allow-Headers", wanted);
  }
  response.headers.emplace_back("Access-Control-Max-Age", "86400");
  return response;
}

bool Access::origin_allowed(std::string_view origin) const {
  const auto& origins = config_->cors_origins;
  const bool listed = std::any_of(origins.begin(), origins.end(), [&](const std::string& name) {
    return name == "*" || equal_ignoring_case(name, origin);
  });
  if (listed) {
    return true;
  }
  for (const std::string_view scheme : {"http://", "https://"}) {
    if (origin.starts_with(scheme)) {
      return is_loopback_host(host_without_port(origin.substr(scheme.size())));
    }
  }
  return false;
}

bool is_loopback_host(std::string_view host) {
  if (equal_ignoring_case(host, "localhost")) {
    return true;
  }
  boost::system::error_code error;
  const auto address = boost::asio::ip::make_address(std::string(host), error);
  return !error && address.is_loopback();
}

std::string_view host_without_port(std::string_view host) {
  if (host.starts_with('[')) {
    const std::size_t end = host.find(']');
    return end == std::string_view::npos ? host : host.substr(1, end - 1);
  }
  return host.substr(0, host.find(':'));
}

bool equal_in_constant_time(std::string_view secret, std::string_view given) {
  // The time depends on the length of what was given, never on the secret.
  unsigned difference = secret.size() == given.size() ? 0U : 1U;
  for (std::size_t i = 0; i < given.size(); ++i) {
    const char expected = secret.empty() ? '\0' : secret[i % secret.size()];
    difference |= static_cast<unsigned char>(expected) ^ static_cast<unsigned char>(given[i]);
  }
  return difference == 0;
}

}  // namespace sluice
