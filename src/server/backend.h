// What every handler works with. All parts outlive the handlers and are safe from any HTTP thread.
#pragma once

#include <memory>

#include "engine/engine.h"
#include "server/exchange.h"
#include "server/readiness.h"
#include "server/served_model.h"
#include "server/server_config.h"
#include "server/server_metrics.h"

namespace sluice {

class BodyBudget;
class CallMemory;
class GrammarCache;
class MediaLoader;
class PlanPool;
class ResponseStore;
class RunningResponses;
struct ThinkingTokens;

struct Backend {
  const ServerConfig* config = nullptr;
  const ServedModel* model = nullptr;
  Engine* engine = nullptr;
  Readiness* readiness = nullptr;
  ResponseStore* responses = nullptr;
  RunningResponses* running_responses = nullptr;
  ServerMetrics* metrics = nullptr;
  const BodyBudget* bodies = nullptr;
  CallMemory* calls = nullptr;
  GrammarCache* grammars = nullptr;
  const MediaLoader* media = nullptr;
  PlanPool* plans = nullptr;
  std::shared_ptr<const ThinkingTokens> thinking = nullptr;
};

using Handler = void (*)(const Backend& backend, const std::shared_ptr<Exchange>& exchange);

}  // namespace sluice
