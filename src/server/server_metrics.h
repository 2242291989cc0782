// What the server counts: HTTP requests, and answers as clients get them. (What the engine computes
// is in EngineStatus: the two differ where tokens are computed that nobody asked to see.)
//
// Labels are names of this program, never what a client sent.
// Thread rule: all methods may run concurrently.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <tuple>

#include "api/reply_format.h"
#include "engine/engine.h"

namespace sluice {

enum class AnswerOutcome { stop, length, abort, error };
inline constexpr std::array kAnswerOutcomes{AnswerOutcome::stop, AnswerOutcome::length,
                                            AnswerOutcome::abort, AnswerOutcome::error};
std::string_view to_string(AnswerOutcome outcome);

struct HttpRequestCounts {
  using Key = std::tuple<std::string, std::string, int>;  // handler, method, status
  std::map<Key, std::int64_t> requests = {};
  std::map<std::string, Histogram> seconds = {};  // by handler
  std::int64_t cut_off = 0;                       // connections that ended before the reply did
};

struct ToolCallCounts {
  std::int64_t ok = 0;
  std::int64_t repaired = 0;   // complete, but not as it should have been written
  std::int64_t literal = 0;    // what looked like one and is text
  std::int64_t truncated = 0;  // cut off by a limit
};

struct AnswerCounts {
  AnswerUsage usage = {};  // summed
  std::array<std::int64_t, kAnswerOutcomes.size()> outcomes =
      {};  // in the order of kAnswerOutcomes
  ToolCallCounts calls = {};
  Histogram choices_asked{kTokenCountBounds};     // `n`, per request
  Histogram tokens_max_asked{kTokenCountBounds};  // per request
};

struct HttpRequestRecord {
  std::string_view handler;  // path of its route
  std::string_view method;   // as sent
  int status = 0;
  double seconds = 0.0;
  bool cut_off = false;
};

class ServerMetrics {
 public:
  // Makes a route show up before it was first used.
  void add_handler(std::string_view handler, std::string_view method);

  void http_request(const HttpRequestRecord& record);

  void request_taken(std::int64_t choices, std::int64_t tokens_max);
  void usage_grew(const AnswerUsage& by);
  void answer_ended(AnswerOutcome outcome, const ToolCallCounts& calls);
  void grammar_compiled(double seconds);

  HttpRequestCounts http() const;
  AnswerCounts answers() const;
  Histogram grammar_seconds() const;

 private:
  mutable std::mutex mutex_;
  HttpRequestCounts http_;
  AnswerCounts answers_;
  Histogram grammar_seconds_{kSecondsBounds};
};

}  // namespace sluice
