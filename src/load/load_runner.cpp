#include "load/load_runner.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/json/object.hpp>
#include <chrono>
#include <mutex>
#include <thread>
#include <utility>

#include "base/check.h"

namespace sluice::load {
namespace {

namespace json = boost::json;

// What a user of a closed loop waits after a failure: a server that refuses everything is not asked
// as fast as it can refuse.
constexpr double kFailurePauseSeconds = 0.1;

enum class Asked { answered, failed, stopped };

class Run {
 public:
  Run(const LoadOptions& options, const ConversationSource& next, const Clock& clock,
      const std::atomic<bool>& stop, const LoadProgress& progress)
      : options_(options),
        next_(next),
        clock_(clock),
        stop_(stop),
        progress_(progress),
        begin_(clock.now()) {}

  // What one user does.
  void work() {
    HttpClient client(options_.url, {.connect_seconds = options_.connect_seconds,
                                     .silence_seconds = options_.silence_seconds,
                                     .api_key = options_.api_key,
                                     .stop = &stop_});
    while (std::optional<PlannedConversation> taken = take_conversation()) {
      converse(client, *taken);
    }
  }

  LoadRun take() { return std::move(run_); }

 private:
  double now() const { return seconds_between(begin_, clock_.now()); }

  std::optional<PlannedConversation> take_conversation() {
    const std::lock_guard lock(mutex_);
    if (stop_.load() || tickets_ == options_.requests_max || now() > options_.seconds_max) {
      return std::nullopt;
    }
    return next_();
  }

  void converse(HttpClient& client, PlannedConversation& taken) {
    Conversation& conversation = *taken.conversation;
    double due = taken.at.value_or(now());
    bool is_first = true;
    while (!conversation.is_over()) {
      if (!is_first) {
        due = std::max(now(), conversation.next_at().value_or(0.0));
      }
      if (!sleep_until(due) || !take_ticket(is_first)) {
        return;
      }
      is_first = false;
      const Asked asked = ask(client, conversation, due);
      if (asked == Asked::stopped) {
        return;
      }
      if (asked == Asked::failed && !taken.at) {
        sleep_until(now() + kFailurePauseSeconds);
      }
    }
  }

  // False: it is after the run's end, or the run was stopped.
  bool sleep_until(double due) const {
    if (due > options_.seconds_max) {
      return false;
    }
    constexpr double kLookSeconds = 0.05;
    while (!stop_.load()) {
      const double left = due - now();
      if (left <= 0.0) {
        return true;
      }
      std::this_thread::sleep_for(std::chrono::duration<double>(std::min(left, kLookSeconds)));
    }
    return false;
  }

  bool take_ticket(bool begins_conversation) {
    const std::lock_guard lock(mutex_);
    if (tickets_ == options_.requests_max) {
      return false;
    }
    ++tickets_;
    run_.conversations += begins_conversation ? 1 : 0;
    return true;
  }

  Asked ask(HttpClient& client, Conversation& conversation, double due) {
    json::object body = conversation.next_body();
    body["model"] = options_.model;
    const double sent = now();
    const Result<ChatAnswer> reply = ask_chat(client, std::move(body), clock_);
    if (!reply && reply.error().code == ErrorCode::cancelled) {
      const std::lock_guard lock(mutex_);
      ++run_.interrupted;
      return Asked::stopped;
    }
    RequestRecord record = record_of(reply, sent - due);
    const bool is_answered = record.failure.empty();
    conversation.take(is_answered ? &*reply : nullptr);
    record.end_seconds = now();
    const std::lock_guard lock(mutex_);
    run_.seconds = std::max(run_.seconds, record.end_seconds);
    run_.records.push_back(std::move(record));
    progress_(static_cast<std::int64_t>(run_.records.size()), now());
    return is_answered ? Asked::answered : Asked::failed;
  }

  static RequestRecord record_of(const Result<ChatAnswer>& reply, double late) {
    RequestRecord record;
    record.late_seconds = std::max(late, 0.0);
    if (!reply) {
      record.failure = to_string(reply.error().code);
      record.message = reply.error().message;
      return record;
    }
    if (reply->status != 200) {
      record.failure = fmt::format("{}", reply->status);
      record.message = reply->error;
      return record;
    }
    record.seconds = record.late_seconds + reply->seconds;
    const std::vector<double>& chunks = reply->chunk_seconds;
    if (!chunks.empty()) {
      record.first_token_seconds = record.late_seconds + chunks.front();
    }
    for (std::size_t i = 1; i < chunks.size(); ++i) {
      record.gap_seconds.push_back(chunks[i] - chunks[i - 1]);
    }
    record.prompt_tokens = reply->prompt_tokens;
    record.completion_tokens = reply->completion_tokens;
    record.cached_tokens = reply->cached_tokens;
    return record;
  }

  const LoadOptions& options_;
  const ConversationSource& next_;
  const Clock& clock_;
  const std::atomic<bool>& stop_;
  const LoadProgress& progress_;
  const Clock::TimePoint begin_;
  std::mutex mutex_;  // guards what follows, next_ and progress_
  LoadRun run_;
  std::int64_t tickets_ = 0;  // requests that were or are about to be sent
};

}  // namespace

LoadRun run_load(const LoadOptions& options, const ConversationSource& next, const Clock& clock,
                 const std::atomic<bool>& stop, const LoadProgress& progress) {
  SLUICE_CHECK(options.users >= 1 && options.users <= kUsersMax);
  SLUICE_CHECK(options.requests_max <= kRequestsMax);
  Run run(options, next, clock, stop, progress);
  {
    std::vector<std::jthread> users;
    users.reserve(static_cast<std::size_t>(options.users));
    for (std::int64_t i = 0; i < options.users; ++i) {
      users.emplace_back([&run] { run.work(); });
    }
  }
  return run.take();
}

}  // namespace sluice::load
