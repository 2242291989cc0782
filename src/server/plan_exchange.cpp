#include "server/plan_exchange.h"

#include <spdlog/spdlog.h>

#include <atomic>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/post.hpp>
#include <exception>
#include <utility>

#include "server/error_map.h"
#include "server/generation_run.h"
#include "server/plan_pool.h"

namespace sluice {
namespace {

// Below this nothing takes long: a prompt of this size is encoded in some milliseconds.
constexpr std::size_t kQuickBytes = std::size_t{32} << 10;

// One request on its way through the pool. `over` is set once nobody waits for its plan.
struct Planning {
  std::shared_ptr<Exchange> exchange;
  HttpRequest http;
  std::string body;
  ApiDialect dialect = ApiDialect::openai;
  PlanRequest plan;
  std::shared_ptr<std::atomic<bool>> over = std::make_shared<std::atomic<bool>>(false);
};

AnswerExchange error_answer(ApiDialect dialect, ApiError error) {
  return [dialect, error = std::move(error)](const std::shared_ptr<Exchange>& exchange) {
    exchange->reply(error_response(dialect, error, exchange->request().id));
  };
}

AnswerExchange run_plan(Planning& planning) {
  try {
    return planning.plan(planning.http, std::move(planning.body));
  } catch (const std::exception& error) {
    spdlog::error("{}: exception while planning: {}", planning.http.id, error.what());
    return error_answer(planning.dialect, {ApiErrorKind::internal, "internal error", ""});
  }
}

void answer(const std::shared_ptr<Exchange>& exchange, ApiDialect dialect, AnswerExchange reply) {
  try {
    exchange->on_gone({});
    exchange->on_abort({});
    reply(exchange);
  } catch (const std::exception& error) {
    spdlog::error("{}: exception while answering: {}", exchange->request().id, error.what());
    exchange->reply(error_response(dialect, {ApiErrorKind::internal, "internal error", ""},
                                   exchange->request().id));
  }
}

// On the pool. Everything goes back with the answer: the exchange must not end on this thread.
void run_on_pool(Planning planning) {
  const auto executor = planning.exchange->executor();
  AnswerExchange reply;
  if (!planning.over->load()) {
    reply = run_plan(planning);
  }
  planning.plan = nullptr;
  boost::asio::post(executor, [exchange = std::move(planning.exchange), over = planning.over,
                               dialect = planning.dialect, reply = std::move(reply)]() mutable {
    if (!over->exchange(true)) {
      answer(exchange, dialect, std::move(reply));
    }
  });
}

// A guess: a few bytes can unpack to a picture that takes a second, and URLs take as long as others
// like.
bool is_quick(std::string_view body, const MediaConfig& media) {
  return body.size() <= kQuickBytes && media.domains.empty() && !body.contains("image") &&
         !body.contains("video");
}

void watch(const std::shared_ptr<Exchange>& exchange, ApiDialect dialect,
           const std::shared_ptr<std::atomic<bool>>& over) {
  exchange->on_gone([over] { over->store(true); });
  exchange->on_abort([over, dialect, weak = std::weak_ptr(exchange)](const ApiError& error) {
    const auto open = weak.lock();
    if (open && !over->exchange(true)) {
      open->reply(error_response(dialect, error, open->request().id));
    }
  });
}

}  // namespace

void plan_exchange(const Backend& backend, const std::shared_ptr<Exchange>& exchange,
                   ApiDialect dialect, PlanRequest plan) {
  std::string body = exchange->take_body();
  if (is_quick(body, backend.config->media)) {
    plan(exchange->request(), std::move(body))(exchange);
    return;
  }
  const std::size_t body_bytes = body.size();
  Planning planning{.exchange = exchange,
                    .http = exchange->request(),
                    .body = std::move(body),
                    .dialect = dialect,
                    .plan = std::move(plan)};
  planning.http.gone = planning.over;
  watch(exchange, dialect, planning.over);
  // The loop of the server must not end before the plan is back.
  auto guard = boost::asio::make_work_guard(exchange->executor());
  const bool taken = backend.plans->post(
      body_bytes, [planning = std::move(planning), guard = std::move(guard)]() mutable {
        run_on_pool(std::move(planning));
      });
  if (!taken) {
    answer(exchange, dialect,
           error_answer(dialect, {ApiErrorKind::queue_full,
                                  "too many large requests are being read; try again soon", ""}));
  }
}

void generate_from(const Backend& backend, const std::shared_ptr<Exchange>& exchange,
                   ApiDialect dialect, MakePlan make) {
  plan_exchange(backend, exchange, dialect,
                [backend, dialect, make](const HttpRequest& http, std::string body) {
                  return [backend, dialect, plan = make(backend, http, std::move(body))](
                             const std::shared_ptr<Exchange>& asker) mutable {
                    start_generation(backend, asker, std::move(plan), dialect);
                  };
                });
}

void reply_json_from(const Backend& backend, const std::shared_ptr<Exchange>& exchange,
                     ApiDialect dialect, MakeJson make) {
  plan_exchange(backend, exchange, dialect,
                [backend, dialect, make](const HttpRequest& http, std::string body) {
                  return [dialect, made = make(backend, http, std::move(body))](
                             const std::shared_ptr<Exchange>& asker) {
                    reply_json(asker, made, dialect);
                  };
                });
}

}  // namespace sluice
