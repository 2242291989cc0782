// Tells ServerMetrics about one request while it is answered.
#pragma once

#include <cstdint>

#include "api/reply_format.h"
#include "server/server_metrics.h"

namespace sluice {

// Thread rule: one owner.
class RequestMeter {
 public:
  RequestMeter(ServerMetrics& metrics, std::int64_t choices, std::int64_t tokens_max)
      : metrics_(&metrics) {
    metrics.request_taken(choices, tokens_max);
  }

  // `usage` is the state so far; what was counted before is not counted again.
  void usage(const AnswerUsage& usage) {
    metrics_->usage_grew({.prompt_tokens = usage.prompt_tokens - counted_.prompt_tokens,
                          .cached_tokens = usage.cached_tokens - counted_.cached_tokens,
                          .completion_tokens = usage.completion_tokens - counted_.completion_tokens,
                          .reasoning_tokens = usage.reasoning_tokens - counted_.reasoning_tokens});
    counted_ = usage;
  }

  void ended(AnswerOutcome outcome, const ToolCallCounts& calls) {
    metrics_->answer_ended(outcome, calls);
  }

 private:
  ServerMetrics* metrics_;
  AnswerUsage counted_;
};

}  // namespace sluice
