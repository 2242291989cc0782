// Responses that are being generated, so that another request of the same client can see that they
// are, and cancel them.
//
//   the run       add() ............................................ end()
//   a canceller           cancel() -> asks the run to end; waits for --'
//
// Thread rule: all methods may run concurrently; callbacks are called without a lock.
#pragma once

#include <boost/json/object.hpp>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace sluice {

class RunningResponses {
 public:
  // With the response object as it ended; with nothing when its client went away first.
  using OnEnd = std::function<void(const std::optional<std::string>& response)>;

  // `shown` is the response object for those who ask meanwhile; none: it is not theirs to see.
  // `cancel` must only ask; it may be called more than once, from any thread.
  void add(std::string id, std::string owner, std::optional<std::string> shown,
           std::function<void()> cancel);

  // As it was shown, while the owner has such a response running.
  std::optional<std::string> find(std::string_view owner, std::string_view id);

  // False, without a call, when the owner has no such response running.
  bool cancel(std::string_view owner, std::string_view id, OnEnd on_end);

  // The second end of a response has no effect.
  void end(const std::string& id, const boost::json::object* response);

 private:
  struct Entry {
    std::string owner;  // API key; empty: none
    std::optional<std::string> shown;
    std::function<void()> cancel;
    std::vector<OnEnd> waiting = {};
  };

  std::mutex mutex_;  // guards the next
  std::unordered_map<std::string, Entry> entries_;
};

}  // namespace sluice
