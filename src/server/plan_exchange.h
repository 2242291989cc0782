// Where the plan of a request is made: at once for small ones, on the plan pool for those that may
// take long, so that no connection waits for another one's pictures.
//
//   strand: take body -> pool: work(...) -> strand: what it returned (unless the client has gone)
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "api/api_error.h"
#include "server/backend.h"
#include "server/generation_plan.h"
#include "server/json_answer.h"

namespace sluice {

// Answers the exchange, on its strand.
using AnswerExchange = std::move_only_function<void(const std::shared_ptr<Exchange>&)>;

// Makes of a request what answers it. Touches neither exchange nor strand.
using PlanRequest =
    std::move_only_function<AnswerExchange(const HttpRequest& http, std::string body)>;

// Replies in any case: also when there is no room for more (queue_full), when `plan` throws, or
// when the server will not wait for it.
void plan_exchange(const Backend& backend, const std::shared_ptr<Exchange>& exchange,
                   ApiDialect dialect, PlanRequest plan);

// The two things that requests are made into: answers of the engine, and JSON without it.
using MakePlan = ApiResult<GenerationPlan> (*)(const Backend& backend, const HttpRequest& http,
                                               std::string body);
void generate_from(const Backend& backend, const std::shared_ptr<Exchange>& exchange,
                   ApiDialect dialect, MakePlan make);

using MakeJson = ApiResult<JsonAnswer> (*)(const Backend& backend, const HttpRequest& http,
                                           std::string body);
void reply_json_from(const Backend& backend, const std::shared_ptr<Exchange>& exchange,
                     ApiDialect dialect, MakeJson make);

}  // namespace sluice
