#include "server/cache_files.h"

#include <spdlog/spdlog.h>

#include <functional>
#include <string>
#include <string_view>
#include <utility>

#include "api/cache_files.h"
#include "server/engine_answer.h"
#include "server/error_map.h"
#include "server/json_answer.h"
#include "server/log_value.h"

namespace sluice {
namespace {

using OnDone = std::function<void(const Result<CacheTransfer>&)>;
using Move = Result<void> (Engine::*)(CacheFile file, OnDone on_done);

// Clients know the file by its name only; where the folder lies on this disk is the log's matter.
Error without_folder(Error error, const std::string& path, const std::string& name) {
  for (std::size_t at = error.message.find(path); at != std::string::npos;
       at = error.message.find(path, at + name.size())) {
    error.message.replace(at, path.size(), name);
  }
  return error;
}

HttpResponse response_to(const Result<CacheTransfer>& moved, const CacheFileRequest& request,
                         const std::string& path, std::string_view operation) {
  if (!moved) {
    spdlog::warn("cache operation={} name={} failed: {}", operation, log_value(request.name),
                 moved.error().message);
    return cache_file_error_response(without_folder(moved.error(), path, request.name));
  }
  const double ms = moved->seconds * 1e3;
  spdlog::info("cache operation={} name={} tokens={} bytes={} pins={} ms={:.1f}", operation,
               log_value(request.name), moved->tokens, moved->bytes, moved->pins, ms);
  HttpResponse response{
      .body = cache_file_report_json({.tokens = moved->tokens, .bytes = moved->bytes, .ms = ms})};
  add_ignored(request.ignored, response);
  return response;
}

void move_cache(const Backend& backend, const std::shared_ptr<Exchange>& exchange, Move move,
                std::string_view operation) {
  if (backend.config->cache_dir.empty()) {
    exchange->reply(
        openai_error_response({ApiErrorKind::not_found,
                               "the server runs without --cache-dir: it has no cache files", ""}));
    return;
  }
  auto request = parse_cache_file_request(exchange->take_body());
  if (!request) {
    exchange->reply(openai_error_response(request.error()));
    return;
  }
  CacheFile file{.path = backend.config->cache_dir / request->name,
                 .identity = backend.model->cache_identity};
  auto reply = [request = std::move(*request), path = file.path.string(), operation](
                   Exchange& asker, const Result<CacheTransfer>& moved) {
    asker.reply(response_to(moved, request, path, operation));
  };
  const auto taken = (backend.engine->*move)(
      std::move(file), answer_exchange<Result<CacheTransfer>>(exchange, std::move(reply)));
  if (!taken) {
    exchange->reply(openai_error_response(submit_error(taken.error())));
  }
}

}  // namespace

void handle_save_cache(const Backend& backend, const std::shared_ptr<Exchange>& exchange) {
  move_cache(backend, exchange, &Engine::save_cache, "save");
}

void handle_load_cache(const Backend& backend, const std::shared_ptr<Exchange>& exchange) {
  move_cache(backend, exchange, &Engine::load_cache, "load");
}

}  // namespace sluice
