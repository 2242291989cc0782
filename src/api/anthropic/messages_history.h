// The messages of an Anthropic request, made into the turns all dialects share (chat_messages.h).
#pragma once

#include <boost/json/value.hpp>
#include <string>
#include <vector>

#include "api/anthropic/content_blocks.h"
#include "api/chat/chat_turn.h"

namespace sluice {

// The `messages` of a request. Neighbours of one role become one turn; the tool results of a user
// message come before its text, in the order of the calls they answer.
std::vector<ChatTurn> read_anthropic_messages(const boost::json::value& messages,
                                              const std::string& path, BlockContext context);

// A string or blocks, as `system` has them: one turn, blocks set apart by a blank line. A line that
// tells a client's version and changes with every request is left out: it would make every prompt
// differ at its very beginning.
ChatTurn read_anthropic_system(const boost::json::value& content, const std::string& path,
                               BlockContext context);

}  // namespace sluice
