// One turn of a conversation, as all dialects read it.
#pragma once

#include <boost/json/array.hpp>
#include <cstddef>
#include <string>
#include <vector>

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

}  // namespace sluice
