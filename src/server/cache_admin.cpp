#include "server/cache_admin.h"

#include <boost/asio/post.hpp>
#include <utility>

#include "api/cache_admin.h"
#include "server/error_map.h"
#include "server/generation_plan.h"

namespace sluice {
namespace {

// A salt means something else under each key: an operator means all of them.
CacheFlush flush_of(const Backend& backend, const FlushRequest& request) {
  CacheFlush flush;
  if (request.cache_salt) {
    flush.salts.emplace();
    flush.salts->push_back(cache_namespace("", *request.cache_salt));
    for (const std::string& key : backend.config->api_keys) {
      flush.salts->push_back(cache_namespace(key, *request.cache_salt));
    }
  }
  return flush;
}

}  // namespace

void handle_cache(const Backend& backend, const std::shared_ptr<Exchange>& exchange) {
  const EngineStatus status = backend.engine->status();
  exchange->reply({.body = cache_report_json({.entries = status.kept_checkpoints,
                                              .tokens = status.kept_tokens,
                                              .bytes = status.kept_bytes,
                                              .bytes_max = status.cache_bytes_max,
                                              .hit_tokens = status.metrics.reused_tokens,
                                              .query_tokens = status.metrics.wanted_tokens})});
}

void handle_cache_flush(const Backend& backend, const std::shared_ptr<Exchange>& exchange) {
  const auto request = parse_flush_request(exchange->take_body());
  if (!request) {
    exchange->reply(openai_error_response(request.error()));
    return;
  }
  // The exchange is moved on to its own thread: it must not end on the engine's.
  auto on_done = [exchange = exchange](const CacheFlushed& freed) mutable {
    const auto executor = exchange->executor();
    boost::asio::post(executor, [exchange = std::move(exchange), freed] {
      exchange->reply({.body = flush_reply_json(freed.tokens, freed.bytes)});
    });
  };
  const auto taken = backend.engine->flush_cache(flush_of(backend, *request), std::move(on_done));
  if (!taken) {
    exchange->reply(openai_error_response(submit_error(taken.error())));
  }
}

}  // namespace sluice
