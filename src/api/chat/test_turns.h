// For tests: what a turn shows as one text, "<I>" a picture, "<V>" a video.
#pragma once

#include <ranges>
#include <string>

#include "api/chat/chat_turn.h"

namespace sluice {

inline std::string shown_text(const ChatTurn& turn) {
  std::string text = turn.text;
  for (const TurnMedia& media : std::views::reverse(turn.media)) {
    text.insert(media.offset, media.source.kind == MediaKind::image ? "<I>" : "<V>");
  }
  return text;
}

}  // namespace sluice
