#include "server/running_responses.h"

#include <boost/json/serialize.hpp>
#include <utility>

namespace sluice {

void RunningResponses::add(std::string id, std::string owner, std::optional<std::string> shown,
                           std::function<void()> cancel) {
  const std::lock_guard lock(mutex_);
  entries_.insert_or_assign(
      std::move(id),
      Entry{.owner = std::move(owner), .shown = std::move(shown), .cancel = std::move(cancel)});
}

std::optional<std::string> RunningResponses::find(std::string_view owner, std::string_view id) {
  const std::lock_guard lock(mutex_);
  const auto found = entries_.find(std::string(id));
  const bool theirs = found != entries_.end() && found->second.owner == owner;
  return theirs ? found->second.shown : std::nullopt;
}

bool RunningResponses::cancel(std::string_view owner, std::string_view id, OnEnd on_end) {
  std::function<void()> cancel;
  {
    const std::lock_guard lock(mutex_);
    const auto found = entries_.find(std::string(id));
    if (found == entries_.end() || found->second.owner != owner) {
      return false;
    }
    found->second.waiting.push_back(std::move(on_end));
    cancel = found->second.cancel;
  }
  cancel();
  return true;
}

void RunningResponses::end(const std::string& id, const boost::json::object* response) {
  std::vector<OnEnd> waiting;
  {
    const std::lock_guard lock(mutex_);
    const auto found = entries_.find(id);
    if (found == entries_.end()) {
      return;
    }
    waiting = std::move(found->second.waiting);
    entries_.erase(found);
  }
  std::optional<std::string> text;
  if (response != nullptr && !waiting.empty()) {
    text = boost::json::serialize(*response);
  }
  for (const OnEnd& on_end : waiting) {
    on_end(text);
  }
}

}  // namespace sluice
