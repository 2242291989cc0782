// Plays a load against a server: users, each a thread with a connection, take one conversation
// after the other and keep what became of every request.
//
// Closed loop: a user's next request follows the last answer. Open loop (conversations with an
// arrival): a request is due at its time whether or not others are answered, and all its times
// count from then, so that a server that falls behind cannot hide it.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "client/http_client.h"
#include "load/conversation.h"

namespace sluice::load {

// A request that was due this much earlier than it was sent counts as a late start.
inline constexpr double kLateSeconds = 0.01;
// Of one run: every request leaves a record.
inline constexpr std::int64_t kRequestsMax = 200'000;
inline constexpr std::int64_t kUsersMax = 1024;

// What became of one request. Times count from when it was due.
struct RequestRecord {
  std::string failure;  // "" answered; else a status ("429") or the name of an ErrorCode
  std::string message;  // of a failure
  double late_seconds = 0;
  double end_seconds = 0;  // after the run's start
  double seconds = 0;      // to the end of the answer
  std::optional<double> first_token_seconds;
  std::vector<double> gap_seconds;  // between chunks with text, reasoning or calls
  std::int64_t prompt_tokens = -1;  // -1: the server did not say
  std::int64_t completion_tokens = -1;
  std::int64_t cached_tokens = -1;
};

struct LoadRun {
  std::vector<RequestRecord> records;  // in the order in which they ended
  std::int64_t conversations = 0;      // begun
  std::int64_t interrupted = 0;        // requests that `stop` cut off: no records
  double seconds = 0;                  // from the start to the last answer
};

struct LoadOptions {
  ServerUrl url;
  double connect_seconds = 10;
  double silence_seconds = 600;
  std::string api_key = {};
  std::string model = {};
  std::int64_t users = 1;  // 1 .. kUsersMax: as many requests are in flight at most
  std::int64_t requests_max = kRequestsMax;
  double seconds_max = std::numeric_limits<double>::infinity();  // nothing is sent later
};

// Called with (requests ended, seconds since the start) by one user at a time.
using LoadProgress = std::function<void(std::int64_t, double)>;

// Blocks until every user is done. `stop`, once true, ends the run within about 100 ms; what has
// ended is kept. `next` is called by one user at a time. Thread rule: one run at a time per source.
LoadRun run_load(const LoadOptions& options, const ConversationSource& next, const Clock& clock,
                 const std::atomic<bool>& stop, const LoadProgress& progress);

}  // namespace sluice::load
