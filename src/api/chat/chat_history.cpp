#include "api/chat/chat_history.h"

#include <algorithm>
#include <array>
#include <boost/json/value_to.hpp>
#include <iterator>
#include <string_view>
#include <utility>

namespace sluice {
namespace {

namespace json = boost::json;

constexpr std::string_view kThinkOpen = "<think>";

// Puts later system texts where the conversation had them; see the header.
class SystemFolder {
 public:
  explicit SystemFolder(bool hoist) : hoist_(hoist) {}

  void add(ChatTurn turn) {
    if (turn.role == TurnRole::system) {
      add_system(std::move(turn));
      return;
    }
    if (turn.role != TurnRole::tool) {
      place_before(turn);
    }
    turns_.push_back(std::move(turn));
  }

  std::vector<ChatTurn> finish() {
    flush_as_own_turn();
    return std::move(turns_);
  }

 private:
  void add_system(ChatTurn turn) {
    if (hoist_ && !turns_.empty()) {
      if (turns_.front().role != TurnRole::system) {
        turns_.insert(turns_.begin(), ChatTurn{.role = TurnRole::system});
      }
      append_turn_text(turns_.front(), turn);
    } else if (turns_.empty()) {
      turns_.push_back(std::move(turn));
    } else if (turns_.back().role == TurnRole::system || turns_.back().role == TurnRole::user) {
      append_turn_text(turns_.back(), turn);
    } else {
      append_turn_text(waiting_, turn);
    }
  }

  // After tool results: at the end of the last one. Otherwise at the head of the next user turn.
  void place_before(ChatTurn& next) {
    if (waiting_.text.empty()) {
      return;
    }
    if (turns_.back().role != TurnRole::tool && next.role == TurnRole::user) {
      append_turn_text(waiting_, next);
      next = std::exchange(waiting_, {});
      return;
    }
    flush_as_own_turn();
  }

  void flush_as_own_turn() {
    if (waiting_.text.empty()) {
      return;
    }
    if (turns_.back().role == TurnRole::tool) {
      append_turn_text(turns_.back(), std::exchange(waiting_, {}));
    } else {
      turns_.push_back(std::exchange(waiting_, {}));
    }
  }

  bool hoist_;
  std::vector<ChatTurn> turns_;
  ChatTurn waiting_;  // a user turn, but for its text empty
};

// The templates refuse a conversation without a user turn.
void ensure_user_turn(std::vector<ChatTurn>& turns) {
  const bool has_user = std::any_of(
      turns.begin(), turns.end(), [](const ChatTurn& turn) { return turn.role == TurnRole::user; });
  if (has_user) {
    return;
  }
  if (turns.size() == 1 && turns.front().role == TurnRole::system) {
    turns.front().role = TurnRole::user;
    return;
  }
  const bool after_system = !turns.empty() && turns.front().role == TurnRole::system;
  turns.insert(turns.begin() + (after_system ? 1 : 0), ChatTurn{});
}

TurnContinuation make_continuation(ChatTurn turn) {
  const std::size_t begin = turn.text.find_first_not_of(" \t\r\n");
  const bool opens = begin != std::string::npos &&
                     std::string_view(turn.text).substr(begin).starts_with(kThinkOpen);
  if (!opens || !turn.reasoning.empty()) {
    return {std::move(turn.reasoning), std::move(turn.text), false};
  }
  std::string_view text = std::string_view(turn.text).substr(begin + kThinkOpen.size());
  if (text.starts_with('\n')) {
    text.remove_prefix(1);  // the template writes this one
  }
  return {{}, std::string(text), true};
}

json::value template_content(const ChatTurn& turn) {
  if (turn.media.empty()) {
    return json::string(turn.text);
  }
  json::array parts;
  std::size_t done = 0;
  const auto add_text = [&](std::size_t end) {
    if (end > done) {
      parts.push_back(json::object{{"type", "text"}, {"text", turn.text.substr(done, end - done)}});
      done = end;
    }
  };
  for (const TurnMedia& media : turn.media) {
    add_text(media.offset);
    const bool is_image = media.source.kind == MediaKind::image;
    parts.push_back(json::object{{"type", is_image ? "image" : "video"}});
  }
  add_text(turn.text.size());
  return parts;
}

}  // namespace

ChatHistory normalise_turns(std::vector<ChatTurn> turns, const HistoryOptions& options) {
  SystemFolder folder(options.hoist_system);
  for (ChatTurn& turn : turns) {
    folder.add(std::move(turn));
  }
  ChatHistory history{folder.finish(), std::nullopt};
  std::vector<ChatTurn>& kept = history.turns;
  if (!kept.empty() && kept.back().role == TurnRole::assistant && kept.back().calls.empty()) {
    const bool continues = options.continue_last || kept.back().continues;
    if (kept.back().text.empty() && !(continues && !kept.back().reasoning.empty())) {
      kept.pop_back();
    } else if (continues) {
      history.continuation = make_continuation(std::move(kept.back()));
      kept.pop_back();
    }
  }
  ensure_user_turn(kept);
  return history;
}

json::array template_messages(const std::vector<ChatTurn>& turns) {
  constexpr std::array<std::string_view, 4> kNames{"system", "user", "assistant", "tool"};
  json::array messages;
  messages.reserve(turns.size());
  for (const ChatTurn& turn : turns) {
    const std::string_view role = kNames[static_cast<std::size_t>(turn.role)];
    json::object message{{"role", json::string_view(role.data(), role.size())},
                         {"content", template_content(turn)}};
    if (turn.role == TurnRole::assistant) {
      // Always a string: without one the template looks for tags in the content.
      message["reasoning_content"] = turn.reasoning;
      if (!turn.calls.empty()) {
        message["tool_calls"] = turn.calls;
      }
    }
    messages.push_back(std::move(message));
  }
  return messages;
}

std::vector<MediaSource> media_of(const std::vector<ChatTurn>& turns) {
  std::vector<MediaSource> sources;
  for (const ChatTurn& turn : turns) {
    std::ranges::transform(turn.media, std::back_inserter(sources), &TurnMedia::source);
  }
  return sources;
}

std::vector<HistoryCall> history_calls(const std::vector<ChatTurn>& turns) {
  std::vector<HistoryCall> calls;
  for (const ChatTurn& turn : turns) {
    for (const json::value& call : turn.calls) {
      const json::object& object = call.get_object();
      const json::object& function = object.at("function").get_object();
      const json::value* id = object.if_contains("id");
      calls.push_back({.id = id != nullptr ? json::value_to<std::string>(*id) : std::string(),
                       .name = json::value_to<std::string>(function.at("name")),
                       .arguments = function.at("arguments").get_object()});
    }
  }
  return calls;
}

}  // namespace sluice
