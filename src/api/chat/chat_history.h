// The turns of a conversation in an order that every template of the model family accepts.
//
// Agents send histories that the templates would refuse: several system messages, system messages
// between turns, no user turn at all, trailing or empty assistant turns. Here they become: at most
// one system turn, first; then user, assistant and tool turns with at least one user turn. Text
// stays at its place, so that the beginning of a prompt does not change when a conversation grows.
#pragma once

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <optional>
#include <string>
#include <vector>

#include "api/chat/chat_turn.h"

namespace sluice {

// An assistant turn the answer goes on from, in the same turn.
struct TurnContinuation {
  std::string reasoning;
  std::string text;
  bool reasoning_open = false;  // text goes on inside the reasoning
};

struct ChatHistory {
  std::vector<ChatTurn> turns;
  std::optional<TurnContinuation> continuation;  // was the last turn
};

// A call of the history as the client sent it back.
struct HistoryCall {
  std::string id;  // empty: none
  std::string name;
  boost::json::object arguments;
};

// Those of all turns, in the order in which the template writes them.
std::vector<HistoryCall> history_calls(const std::vector<ChatTurn>& turns);

struct HistoryOptions {
  // The request wants the last assistant turn continued even if the message does not say so.
  bool continue_last = false;
  // Later system messages join the first instead of staying where they are: some models heed them
  // better, but the beginning of the prompt changes with each.
  bool hoist_system = false;
};

// The pictures and videos of all turns, in the order in which the template shows them.
std::vector<MediaSource> media_of(const std::vector<ChatTurn>& turns);

// Orders and folds the turns as described above.
ChatHistory normalise_turns(std::vector<ChatTurn> turns, const HistoryOptions& options);

// The "messages" variable of the template. What shows pictures or videos is a list of parts, all
// else a string.
boost::json::array template_messages(const std::vector<ChatTurn>& turns);

}  // namespace sluice
