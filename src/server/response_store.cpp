// Items are kept as text: a parsed tree would take several times the memory.
#include "server/response_store.h"

#include <utility>

#include "api/fields/json_text.h"

namespace sluice {

namespace json = boost::json;

// Counts its bytes as long as any entry, or a request that reads it, holds it.
class ResponseStore::Turn {
 public:
  Turn(std::string input, std::string output, std::shared_ptr<std::atomic<std::size_t>> bytes)
      : input_(std::move(input)), output_(std::move(output)), bytes_(std::move(bytes)) {
    *bytes_ += input_.size() + output_.size();
  }
  ~Turn() { *bytes_ -= input_.size() + output_.size(); }
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;

  const std::string& input() const { return input_; }
  const std::string& output() const { return output_; }

 private:
  std::string input_;  // JSON arrays
  std::string output_;
  std::shared_ptr<std::atomic<std::size_t>> bytes_;
};

namespace {

json::array array_of(const std::string& text) {
  auto value = parse_json(text);
  return value && value->is_array() ? std::move(value->get_array()) : json::array();
}

}  // namespace

ResponseStore::ResponseStore(const ResponseStoreLimits& limits, const Clock& clock)
    : limits_(limits), clock_(&clock), bytes_(std::make_shared<std::atomic<std::size_t>>(0)) {}

void ResponseStore::put(NewResponse entry, const json::object& response) {
  Entry made{.owner = std::move(entry.owner),
             .id = std::string(response.at("id").get_string()),
             .response = to_json(response),
             .turns = std::move(entry.before),
             .created = clock_->now()};
  made.turns.push_back(std::make_shared<const Turn>(to_json(entry.input_items),
                                                    to_json(response.at("output")), bytes_));
  made.bytes = made.response.size() + made.turns.size() * sizeof(Turns::value_type);
  const std::lock_guard lock(mutex_);
  *bytes_ += made.bytes;
  entries_.push_front(std::move(made));
  by_id_[entries_.front().id] = entries_.begin();
  make_room();
}

std::optional<std::string> ResponseStore::response(std::string_view owner, std::string_view id) {
  const std::lock_guard lock(mutex_);
  const Entry* entry = find(owner, id);
  return entry != nullptr ? std::optional(entry->response) : std::nullopt;
}

std::optional<ResponseStore::Turns> ResponseStore::turns(std::string_view owner,
                                                         std::string_view id) {
  const std::lock_guard lock(mutex_);
  const Entry* entry = find(owner, id);
  return entry != nullptr ? std::optional(entry->turns) : std::nullopt;
}

std::optional<json::array> ResponseStore::input_items(std::string_view owner, std::string_view id) {
  const auto found = turns(owner, id);
  return found ? std::optional(array_of(found->back()->input())) : std::nullopt;
}

bool ResponseStore::erase(std::string_view owner, std::string_view id) {
  const std::lock_guard lock(mutex_);
  if (find(owner, id) == nullptr) {
    return false;
  }
  drop(entries_.begin());  // find() put it there
  return true;
}

json::array ResponseStore::items_of(const Turns& turns) {
  json::array items;
  for (const auto& turn : turns) {
    for (const std::string* text : {&turn->input(), &turn->output()}) {
      for (json::value& item : array_of(*text)) {
        items.push_back(std::move(item));
      }
    }
  }
  return items;
}

std::size_t ResponseStore::entry_count() const {
  const std::lock_guard lock(mutex_);
  return entries_.size();
}

// Makes it the most recently used one.
ResponseStore::Entry* ResponseStore::find(std::string_view owner, std::string_view id) {
  const auto found = by_id_.find(std::string(id));
  if (found == by_id_.end() || found->second->owner != owner) {
    return nullptr;
  }
  if (clock_->now() - found->second->created >= limits_.lifetime) {
    drop(found->second);
    return nullptr;
  }
  entries_.splice(entries_.begin(), entries_, found->second);
  return &entries_.front();
}

void ResponseStore::drop(Entries::iterator entry) {
  *bytes_ -= entry->bytes;
  by_id_.erase(entry->id);
  entries_.erase(entry);
}

void ResponseStore::make_room() {
  const Clock::TimePoint now = clock_->now();
  for (auto entry = entries_.begin(); entry != entries_.end();) {
    const auto next = std::next(entry);
    if (now - entry->created >= limits_.lifetime) {
      drop(entry);
    }
    entry = next;
  }
  while (!entries_.empty() &&
         (entries_.size() > limits_.entries_max || *bytes_ > limits_.bytes_max)) {
    drop(std::prev(entries_.end()));
  }
}

}  // namespace sluice
