// The table of routes is the list of what this server answers. Every path also works with /v1 in
// front, and HEAD wherever GET does.
#include "server/router.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <array>
#include <chrono>

#include "server/cache_admin.h"
#include "server/cache_files.h"
#include "server/cache_pins.h"
#include "server/chat_completions.h"
#include "server/completions.h"
#include "server/debug_parse.h"
#include "server/error_map.h"
#include "server/health.h"
#include "server/log_value.h"
#include "server/messages.h"
#include "server/metrics_page.h"
#include "server/models.h"
#include "server/openapi.h"
#include "server/responses.h"
#include "server/stored_responses.h"
#include "server/text_utilities.h"

namespace sluice {
namespace {

struct Route {
  std::string_view path;
  bool with_id = false;  // anything may follow "path/"
  Handler get = nullptr;
  Handler post = nullptr;
  Handler del = nullptr;
  bool open = false;         // works without a key
  bool public_info = false;  // works without a key if the server is set up so
  bool admin = false;        // see Access::check_admin()
  bool debug = false;        // exists only with --enable-debug
};

constexpr auto kRoutes = std::to_array<Route>({
    {.path = "/chat/completions", .post = handle_chat_completions},
    {.path = "/chat/completions/input_tokens", .post = handle_chat_input_tokens},
    {.path = "/completions", .post = handle_completions},
    {.path = "/responses", .post = handle_responses},
    {.path = "/responses/input_tokens", .post = handle_response_input_tokens},
    {.path = "/responses",
     .with_id = true,
     .get = handle_get_response,
     .post = handle_cancel_response,
     .del = handle_delete_response},
    {.path = "/messages", .post = handle_messages},
    {.path = "/messages/count_tokens", .post = handle_count_tokens},
    {.path = "/tokenize", .post = handle_tokenize},
    {.path = "/detokenize", .post = handle_detokenize},
    {.path = "/apply-template", .post = handle_apply_template},
    {.path = "/models", .get = handle_models},
    {.path = "/models", .with_id = true, .get = handle_model},
    {.path = "/health", .get = handle_ready, .open = true},
    {.path = "/ready", .get = handle_ready, .open = true},
    {.path = "/ping", .get = handle_ready, .open = true},
    {.path = "/live", .get = handle_live, .open = true},
    {.path = "/debug/parse", .post = handle_debug_parse, .debug = true},
    {.path = "/props", .get = handle_props},
    {.path = "/version", .get = handle_version, .public_info = true},
    {.path = "/metrics", .get = handle_metrics, .public_info = true},
    {.path = "/openapi.json", .get = handle_openapi, .public_info = true},
    {.path = "/cache", .get = handle_cache, .admin = true},
    {.path = "/cache/flush", .post = handle_cache_flush, .admin = true},
    {.path = "/cache/save", .post = handle_save_cache, .admin = true},
    {.path = "/cache/load", .post = handle_load_cache, .admin = true},
    {.path = "/cache/pins", .get = handle_pins, .post = handle_make_pin, .admin = true},
    {.path = "/cache/pins",
     .with_id = true,
     .get = handle_pin,
     .del = handle_delete_pin,
     .admin = true},
    {.path = "/flush_cache", .post = handle_cache_flush, .admin = true},
    {.path = "/reset_prefix_cache", .post = handle_cache_flush, .admin = true},
    {.path = "/", .get = handle_live, .open = true},
});

// What other servers have and a generation model cannot do well. 400, so that nobody tries again.
constexpr std::array<std::string_view, 7> kUnsupported{
    "/embeddings", "/rerank", "/moderations", "/audio", "/images", "/files", "/batches"};

std::string_view without_version(std::string_view path) {
  constexpr std::string_view kVersion = "/v1";
  if (path == kVersion) {
    return "/";
  }
  if (path.starts_with(kVersion) && path.substr(kVersion.size()).starts_with('/')) {
    path.remove_prefix(kVersion.size());
  }
  return path;
}

bool is_below(std::string_view path, std::string_view folder) {
  return path.size() > folder.size() + 1 && path.starts_with(folder) && path[folder.size()] == '/';
}

ApiDialect dialect_of(std::string_view path) {
  constexpr std::string_view kMessages = "/messages";
  return path == kMessages || is_below(path, kMessages) ? ApiDialect::anthropic
                                                        : ApiDialect::openai;
}

const Route* find_route(std::string_view path) {
  const auto* found = std::find_if(kRoutes.begin(), kRoutes.end(), [&](const Route& route) {
    return route.with_id ? is_below(path, route.path) : path == route.path;
  });
  return found == kRoutes.end() ? nullptr : found;
}

Handler handler_of(const Route& route, std::string_view method) {
  if (method == "GET" || method == "HEAD") {
    return route.get;
  }
  if (method == "DELETE") {
    return route.del;
  }
  return method == "POST" ? route.post : nullptr;
}

std::string allowed_methods(const Route& route) {
  std::string methods;
  methods += route.get != nullptr ? "GET, HEAD, " : "";
  methods += route.post != nullptr ? "POST, " : "";
  methods += route.del != nullptr ? "DELETE, " : "";
  return methods + "OPTIONS";
}

ApiError unknown_path(std::string_view path) {
  for (const std::string_view known : kUnsupported) {
    if (path == known || is_below(path, known)) {
      return {ApiErrorKind::unsupported_endpoint,
              fmt::format("{} is not available: this server runs a text generation model; run a "
                          "server made for that next to it",
                          known),
              ""};
    }
  }
  return {ApiErrorKind::not_found, "there is nothing at this path", ""};
}

}  // namespace

Router::Router(const Backend& backend, const Access& access) : backend_(backend), access_(access) {
  for (const Route& route : kRoutes) {
    backend.metrics->add_handler(route.path, route.get != nullptr ? "GET" : "POST");
  }
}

std::optional<HttpResponse> Router::refuse(const HttpRequest& head) {
  if (const auto error = access_.check_host(head)) {
    return error_response(head, *error);
  }
  if (head.method == "OPTIONS") {
    return access_.preflight(head);
  }
  if (equal_ignoring_case(head.header("Upgrade"), "websocket")) {
    return error_response(
        head, {ApiErrorKind::upgrade_required, "WebSocket is not spoken here; send a POST", ""});
  }
  const std::string_view path = without_version(head.path);
  const Route* route = find_route(path);
  if (route == nullptr || (route->debug && !backend_.config->debug)) {
    return error_response(head, unknown_path(path));
  }
  if (handler_of(*route, head.method) == nullptr) {
    HttpResponse response = error_response(
        head, {ApiErrorKind::method_not_allowed, "this path does not answer this method", ""});
    response.headers.emplace_back("Allow", allowed_methods(*route));
    return response;
  }
  const bool open = route->open || (route->public_info && access_.public_info());
  if (!open) {
    const auto error = route->admin ? access_.check_admin(head) : access_.check_key(head);
    if (error) {
      return error_response(head, *error);
    }
  }
  if (const auto error = check_encoding(head)) {
    return error_response(head, *error);
  }
  return std::nullopt;
}

std::optional<ApiError> Router::check_encoding(const HttpRequest& head) const {
  const std::string_view type = head.header("Content-Type");
  constexpr std::string_view kMultipart = "multipart/";
  if (equal_ignoring_case(type.substr(0, kMultipart.size()), kMultipart)) {
    return ApiError{ApiErrorKind::unsupported_media_type, "send the body as JSON", ""};
  }
  const std::string_view encoding = head.header("Content-Encoding");
  if (!encoding.empty() && !equal_ignoring_case(encoding, "identity") && !is_gzip(encoding)) {
    return ApiError{ApiErrorKind::unsupported_media_type,
                    "the body may be compressed with gzip only", ""};
  }
  return std::nullopt;
}

void Router::handle(std::shared_ptr<Exchange> exchange) {
  const HttpRequest& request = exchange->request();
  const Route* route = find_route(without_version(request.path));
  handler_of(*route, request.method)(backend_, exchange);  // refuse() let only known ones through
}

HttpResponse Router::error_response(const HttpRequest& request, const ApiError& error) {
  return sluice::error_response(dialect_of(without_version(request.path)), error, request.id);
}

void Router::complete_head(const HttpRequest& request, HttpResponse& response) {
  response.headers.emplace_back("x-request-id", request.id);
  response.headers.emplace_back("request-id", request.id);
  response.headers.emplace_back("x-served-model", backend_.model->id);
  if (request.received != std::chrono::steady_clock::time_point()) {
    const auto taken = std::chrono::steady_clock::now() - request.received;
    response.headers.emplace_back(
        "openai-processing-ms",
        std::to_string(std::chrono::duration_cast<std::chrono::milliseconds>(taken).count()));
  }
  access_.add_cors(request, response);
}

void Router::log(const HttpRequest& request, const AccessRecord& record) {
  // The path of the route, not what the client sent: paths and names are user content.
  const Route* route = find_route(without_version(request.path));
  const std::string_view handler = route != nullptr ? route->path : "(unknown)";
  backend_.metrics->http_request({.handler = handler,
                                  .method = request.method,
                                  .status = record.status,
                                  .seconds = record.seconds,
                                  .cut_off = record.cut_off});
  spdlog::info("request id={} method={} handler={} status={} ms={:.1f} bytes={}{}",
               log_value(request.id), log_value(request.method), handler, record.status,
               record.seconds * 1000.0, record.sent_bytes, record.cut_off ? " cut_off=true" : "");
}

}  // namespace sluice
