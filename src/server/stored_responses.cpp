#include "server/stored_responses.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/asio/post.hpp>
#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>
#include <utility>

#include "server/access.h"
#include "server/error_map.h"
#include "server/response_store.h"
#include "server/running_responses.h"

namespace sluice {
namespace {

namespace json = boost::json;

// "/v1/responses/resp_1/input_items" -> "resp_1", "input_items".
struct ResponsePath {
  std::string id;
  std::string rest;
};

ResponsePath split_path(std::string_view path) {
  constexpr std::string_view kFolder = "/responses/";
  path.remove_prefix(path.find(kFolder) + kFolder.size());
  const std::size_t slash = path.find('/');
  if (slash == std::string_view::npos) {
    return {std::string(path), ""};
  }
  return {std::string(path.substr(0, slash)), std::string(path.substr(slash + 1))};
}

void reply_not_found(const std::shared_ptr<Exchange>& exchange, const ResponsePath& path) {
  exchange->reply(openai_error_response(
      {ApiErrorKind::not_found,
       fmt::format("Response with id '{}' not found.", path.id.substr(0, 64)), "response_id"}));
}

void reply_response(const std::shared_ptr<Exchange>& exchange, const ResponsePath& path,
                    const std::optional<std::string>& response) {
  if (response) {
    exchange->reply({.body = *response});
  } else {
    reply_not_found(exchange, path);
  }
}

std::string owner_of(const Backend& backend, const HttpRequest& request) {
  return std::string(presented_key(backend.config->api_keys, request));
}

// All items at once, newest first unless the query asks for order=asc.
std::string input_list(json::array items, const HttpRequest& request) {
  if (request.target.find("order=asc") == std::string::npos) {
    std::reverse(items.begin(), items.end());
  }
  const auto id_of = [](const json::value& item) { return item.at("id"); };
  const json::value first = items.empty() ? json::value(nullptr) : id_of(items.front());
  const json::value last = items.empty() ? json::value(nullptr) : id_of(items.back());
  return json::serialize(json::object{{"object", "list"},
                                      {"data", std::move(items)},
                                      {"first_id", first},
                                      {"last_id", last},
                                      {"has_more", false}});
}

}  // namespace

void handle_get_response(const Backend& backend, const std::shared_ptr<Exchange>& exchange) {
  const HttpRequest& request = exchange->request();
  const ResponsePath path = split_path(request.path);
  const std::string owner = owner_of(backend, request);
  if (path.rest.empty()) {
    // In this order: one that ends in between is in the store by then.
    auto response = backend.running_responses->find(owner, path.id);
    if (!response) {
      response = backend.responses->response(owner, path.id);
    }
    reply_response(exchange, path, response);
    return;
  }
  if (path.rest == "input_items") {
    if (auto items = backend.responses->input_items(owner, path.id)) {
      exchange->reply({.body = input_list(std::move(*items), request)});
      return;
    }
  }
  reply_not_found(exchange, path);
}

void handle_delete_response(const Backend& backend, const std::shared_ptr<Exchange>& exchange) {
  const ResponsePath path = split_path(exchange->request().path);
  const std::string owner = owner_of(backend, exchange->request());
  if (!path.rest.empty() || !backend.responses->erase(owner, path.id)) {
    reply_not_found(exchange, path);
    return;
  }
  exchange->reply({.body = json::serialize(
                       json::object{{"id", path.id}, {"object", "response"}, {"deleted", true}})});
}

void handle_cancel_response(const Backend& backend, const std::shared_ptr<Exchange>& exchange) {
  const ResponsePath path = split_path(exchange->request().path);
  if (path.rest != "cancel") {
    reply_not_found(exchange, path);
    return;
  }
  const std::string owner = owner_of(backend, exchange->request());
  const bool running = backend.running_responses->cancel(
      owner, path.id, [exchange, path](const std::optional<std::string>& response) {
        boost::asio::post(exchange->executor(),
                          [exchange, path, response] { reply_response(exchange, path, response); });
      });
  if (!running) {  // it ended by itself, or never was
    reply_response(exchange, path, backend.responses->response(owner, path.id));
  }
}

}  // namespace sluice
