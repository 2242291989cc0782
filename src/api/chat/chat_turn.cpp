#include "api/chat/chat_turn.h"

#include <utility>

namespace sluice {

void append_turn_text(ChatTurn& turn, const ChatTurn& more) {
  if (!turn.is_empty() && !more.is_empty()) {
    turn.text += "\n\n";  // a blank line
  }
  for (const std::size_t mark : more.cache_marks) {
    turn.cache_marks.push_back(turn.text.size() + mark);
  }
  for (const TurnMedia& media : more.media) {
    turn.media.push_back({turn.text.size() + media.offset, media.source});
  }
  turn.text += more.text;
}

void add_media(ChatTurn& turn, MediaSource source) {
  turn.media.push_back({turn.text.size(), std::move(source)});
}

void prepend_text(ChatTurn& turn, const std::string& head) {
  turn.text.insert(0, head);
  for (std::size_t& mark : turn.cache_marks) {
    mark += head.size();
  }
  for (TurnMedia& media : turn.media) {
    media.offset += head.size();
  }
}

void mark_end(ChatTurn& turn, bool marked) {
  if (marked) {
    turn.cache_marks.push_back(turn.text.size());
  }
}

}  // namespace sluice
