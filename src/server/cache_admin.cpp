#include "server/cache_admin.h"

#include <utility>

#include "api/cache_admin.h"
#include "server/cache_pins.h"
#include "server/engine_answer.h"
#include "server/error_map.h"
#include "server/generation_plan.h"

namespace sluice {
namespace {

// A salt means something else under each key: an operator means all of them.
CacheFlush flush_of(const Backend& backend, const FlushRequest& request) {
  CacheFlush flush{.keep_pins = request.keep_pins};
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
  answer_with_pins(
      backend, exchange, [engine = backend.engine](const std::vector<PinnedPrefix>& pins) {
        const EngineStatus status = engine->status();
        return HttpResponse{.body = cache_report_json({.entries = status.kept_checkpoints,
                                                       .tokens = status.kept_tokens,
                                                       .bytes = status.kept_bytes,
                                                       .bytes_max = status.cache_bytes_max,
                                                       .hit_tokens = status.metrics.reused_tokens,
                                                       .query_tokens = status.metrics.wanted_tokens,
                                                       .pinned = report_pins(pins)})};
      });
}

void handle_cache_flush(const Backend& backend, const std::shared_ptr<Exchange>& exchange) {
  const auto request = parse_flush_request(exchange->take_body());
  if (!request) {
    exchange->reply(openai_error_response(request.error()));
    return;
  }
  const auto reply = [](Exchange& asker, const CacheFlushed& freed) {
    asker.reply({.body = flush_reply_json(freed.tokens, freed.bytes)});
  };
  const auto taken = backend.engine->flush_cache(flush_of(backend, *request),
                                                 answer_exchange<CacheFlushed>(exchange, reply));
  if (!taken) {
    exchange->reply(openai_error_response(submit_error(taken.error())));
  }
}

}  // namespace sluice
