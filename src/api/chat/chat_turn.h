// One turn of a conversation, as all dialects read it.
#pragma once

#include <boost/json/array.hpp>
#include <cstddef>
#include <string>
#include <vector>

#include "api/chat/media_source.h"

namespace sluice {

enum class TurnRole { system, user, assistant, tool };

// A picture or a video, right before the byte `offset` of the text it stands in.
struct TurnMedia {
  std::size_t offset = 0;
  MediaSource source = {};
};

struct ChatTurn {
  TurnRole role = TurnRole::user;
  std::string text = {};
  std::string reasoning = {};  // assistant only
  // Assistant only: [{"id","type","function":{"name","arguments":{}}}].
  boost::json::array calls = {};
  bool continues = false;  // assistant only: asked to be continued, not answered
  // Where in the text the client asked for a reusable state; ascending. See cache_marks.h.
  std::vector<std::size_t> cache_marks = {};
  // User and tool turns only; ascending, those at one place in their order. A mark at the same
  // place comes after them.
  std::vector<TurnMedia> media = {};

  // Whether it shows the model nothing.
  bool is_empty() const { return text.empty() && media.empty(); }
};

// Appends what `more` shows after a blank line, with its marks.
void append_turn_text(ChatTurn& turn, const ChatTurn& more);

// Appends the picture or video to the text so far.
void add_media(ChatTurn& turn, MediaSource source);

// Puts `head` before the text.
void prepend_text(ChatTurn& turn, const std::string& head);

// Marks the end of the text so far.
void mark_end(ChatTurn& turn, bool marked);

}  // namespace sluice
