#include "api/chat/chat_turn.h"

#include <string_view>

namespace sluice {

void append_turn_text(ChatTurn& turn, const ChatTurn& more) {
  if (!turn.text.empty() && !more.text.empty()) {
    turn.text += "\n\n";  // a blank line
  }
  for (const std::size_t mark : more.cache_marks) {
    turn.cache_marks.push_back(turn.text.size() + mark);
  }
  turn.text += more.text;
}

void mark_end(ChatTurn& turn, bool marked) {
  if (marked) {
    turn.cache_marks.push_back(turn.text.size());
  }
}

}  // namespace sluice
