// The messages of a chat request, made into turns that every template of the model family accepts.
//
// Agents send histories that the templates would refuse: several system messages, system messages
// between turns, no user turn at all, trailing or empty assistant turns, cut-off tool calls. Here
// they become: at most one system turn, first; then user, assistant and tool turns with at least
// one user turn. Text stays at its place, so that the beginning of a prompt does not change when a
// conversation grows.
#pragma once

#include <boost/json/array.hpp>
#include <boost/json/value.hpp>
#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "api/fields/json_fields.h"

namespace sluice {

enum class TurnRole { system, user, assistant, tool };

struct ChatTurn {
  TurnRole role = TurnRole::user;
  std::string text = {};
  std::string reasoning = {};  // assistant only
  // Assistant only: [{"id","type","function":{"name","arguments":{}}}].
  boost::json::array calls = {};
  bool continues = false;  // assistant only: asked to be continued, not answered
  // Where in the text the client asked for a reusable state; ascending. See cache_marks.h.
  std::vector<std::size_t> cache_marks = {};
};

// Appends the text of `more` after a blank line, with its marks.
void append_turn_text(ChatTurn& turn, const ChatTurn& more);

// Marks the end of the text so far.
void mark_end(ChatTurn& turn, bool marked);

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

// `messages` is an array, or a string that holds one. Errors go to the report.
std::vector<ChatTurn> read_chat_turns(const boost::json::value& messages, const std::string& path,
                                      FieldReport& report);

// A call of the history as the client sent it back.
struct HistoryCall {
  std::string id;  // empty: none
  std::string name;
  boost::json::object arguments;
};

// Those of all turns, in the order in which the template writes them.
std::vector<HistoryCall> history_calls(const std::vector<ChatTurn>& turns);

// Orders and folds the turns as described above. continue_last: the request wants the last
// assistant turn continued even if the message does not say so.
ChatHistory normalise_turns(std::vector<ChatTurn> turns, bool continue_last);

// The "messages" variable of the template.
boost::json::array template_messages(const std::vector<ChatTurn>& turns);

}  // namespace sluice
