#include "server/server_metrics.h"

#include <algorithm>

namespace sluice {
namespace {

// A client may send any word as its method.
std::string known_method(std::string_view method) {
  static constexpr std::array<std::string_view, 7> kKnown{"GET",    "HEAD",    "POST", "PUT",
                                                          "DELETE", "OPTIONS", "PATCH"};
  return std::string(std::ranges::find(kKnown, method) != kKnown.end() ? method : "other");
}

}  // namespace

std::string_view to_string(AnswerOutcome outcome) {
  switch (outcome) {
    case AnswerOutcome::stop:
      return "stop";
    case AnswerOutcome::length:
      return "length";
    case AnswerOutcome::abort:
      return "abort";
    case AnswerOutcome::error:
      break;
  }
  return "error";
}

void ServerMetrics::add_handler(std::string_view handler, std::string_view method) {
  const std::scoped_lock lock(mutex_);
  http_.requests.try_emplace({std::string(handler), known_method(method), 200}, 0);
  http_.seconds.try_emplace(std::string(handler), kSecondsBounds);
}

void ServerMetrics::http_request(const HttpRequestRecord& record) {
  const std::scoped_lock lock(mutex_);
  const std::string handler(record.handler);
  ++http_.requests[{handler, known_method(record.method), record.status}];
  http_.seconds.try_emplace(handler, kSecondsBounds).first->second.add(record.seconds);
  http_.cut_off += record.cut_off ? 1 : 0;
}

void ServerMetrics::request_taken(std::int64_t choices, std::int64_t tokens_max) {
  const std::scoped_lock lock(mutex_);
  answers_.choices_asked.add(static_cast<double>(choices));
  answers_.tokens_max_asked.add(static_cast<double>(tokens_max));
}

void ServerMetrics::usage_grew(const AnswerUsage& by) {
  const std::scoped_lock lock(mutex_);
  answers_.usage.prompt_tokens += by.prompt_tokens;
  answers_.usage.cached_tokens += by.cached_tokens;
  answers_.usage.completion_tokens += by.completion_tokens;
  answers_.usage.reasoning_tokens += by.reasoning_tokens;
}

void ServerMetrics::answer_ended(AnswerOutcome outcome, const ToolCallCounts& calls) {
  const std::scoped_lock lock(mutex_);
  answers_.calls.ok += calls.ok;
  answers_.calls.repaired += calls.repaired;
  answers_.calls.literal += calls.literal;
  answers_.calls.truncated += calls.truncated;
  ++answers_.outcomes[static_cast<std::size_t>(outcome)];
}

void ServerMetrics::grammar_compiled(double seconds) {
  const std::scoped_lock lock(mutex_);
  grammar_seconds_.add(seconds);
}

HttpRequestCounts ServerMetrics::http() const {
  const std::scoped_lock lock(mutex_);
  return http_;
}

AnswerCounts ServerMetrics::answers() const {
  const std::scoped_lock lock(mutex_);
  return answers_;
}

Histogram ServerMetrics::grammar_seconds() const {
  const std::scoped_lock lock(mutex_);
  return grammar_seconds_;
}

}  // namespace sluice
