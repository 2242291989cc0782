// Finished responses, kept in memory for clients that go on from them or look them up again.
//
//   entry -> the response object, and its conversation: one Turn for each response up to this one
//   Turn     input and output items of one response; shared by all entries that go on from it
//
// So a conversation stays whole when an earlier response of it is deleted or dropped. Entries
// belong to an API key and are invisible to others. The least recently used ones go first, all of
// them after their lifetime, everything at the end of the process. Thread rule: all methods may run
// concurrently.
#pragma once

#include <atomic>
#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <chrono>
#include <cstddef>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/clock.h"

namespace sluice {

struct ResponseStoreLimits {
  std::size_t entries_max = 1024;
  std::size_t bytes_max = std::size_t{256} << 20;  // of JSON text
  std::chrono::seconds lifetime = std::chrono::hours(24);
};

class ResponseStore {
 public:
  class Turn;
  using Turns = std::vector<std::shared_ptr<const Turn>>;  // oldest first

  // The clock must outlive the store.
  ResponseStore(const ResponseStoreLimits& limits, const Clock& clock);

  struct NewResponse {
    std::string owner;  // API key; empty: none
    Turns before;       // of the response it goes on from
    boost::json::array input_items;
  };
  // `response`: the final object. Too large for the store: nothing is kept.
  void put(NewResponse entry, const boost::json::object& response);

  // Nothing for an id that is unknown, expired, or of another owner.
  std::optional<std::string> response(std::string_view owner, std::string_view id);
  std::optional<Turns> turns(std::string_view owner, std::string_view id);
  std::optional<boost::json::array> input_items(std::string_view owner, std::string_view id);
  bool erase(std::string_view owner, std::string_view id);

  // Input and output items of all turns.
  static boost::json::array items_of(const Turns& turns);

  std::size_t entry_count() const;
  std::size_t bytes() const { return bytes_->load(); }

 private:
  struct Entry {
    std::string owner;
    std::string id;
    std::string response;
    Turns turns;            // the last is its own
    std::size_t bytes = 0;  // beside those of the turns
    Clock::TimePoint created;
  };
  using Entries = std::list<Entry>;  // most recently used first

  Entry* find(std::string_view owner, std::string_view id);
  void drop(Entries::iterator entry);
  void make_room();

  const ResponseStoreLimits limits_;
  const Clock* clock_;
  std::shared_ptr<std::atomic<std::size_t>> bytes_;
  mutable std::mutex mutex_;  // guards the two below
  Entries entries_;
  std::unordered_map<std::string, Entries::iterator> by_id_;
};

}  // namespace sluice
