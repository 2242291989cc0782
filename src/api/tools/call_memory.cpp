#include "api/tools/call_memory.h"

#include <utility>

#include "api/fields/json_text.h"

namespace sluice {
namespace {

// Of one entry beside its texts and tokens; arguments as a tree take several times their text.
constexpr std::size_t kEntryBytes = 512;
constexpr std::size_t kTreeFactor = 4;

std::string make_key(std::string_view owner, std::string_view id) {
  std::string key(owner);
  key += '\0';
  key += id;
  return key;
}

}  // namespace

void CallMemory::remember(std::string_view owner, const FinishedCall& call) {
  auto arguments = parse_json(call.arguments);
  if (call.token_ids.empty() || !arguments || !arguments->is_object()) {
    return;
  }
  Entry entry{.key = make_key(owner, call.head.id),
              .name = call.head.name,
              .arguments = std::move(arguments->get_object()),
              .token_ids = call.token_ids};
  entry.bytes = kEntryBytes + entry.key.size() + entry.name.size() +
                call.arguments.size() * kTreeFactor + entry.token_ids.size() * sizeof(TokenId);
  const std::lock_guard lock(mutex_);
  if (entry.bytes > bytes_max_ || by_key_.contains(entry.key)) {
    return;
  }
  bytes_ += entry.bytes;
  entries_.push_front(std::move(entry));
  by_key_.emplace(entries_.front().key, entries_.begin());
  while (bytes_ > bytes_max_) {
    bytes_ -= entries_.back().bytes;
    by_key_.erase(entries_.back().key);
    entries_.pop_back();
  }
}

std::optional<std::vector<TokenId>> CallMemory::find(std::string_view owner, std::string_view id,
                                                     std::string_view name,
                                                     const boost::json::object& arguments) {
  const std::lock_guard lock(mutex_);
  const auto found = by_key_.find(make_key(owner, id));
  if (found == by_key_.end()) {
    return std::nullopt;
  }
  entries_.splice(entries_.begin(), entries_, found->second);
  const Entry& entry = entries_.front();
  if (entry.name != name || entry.arguments != arguments) {
    return std::nullopt;
  }
  return entry.token_ids;
}

}  // namespace sluice
