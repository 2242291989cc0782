// The messages of a chat request, read as turns. How they are ordered: chat_history.h.
#pragma once

#include <boost/json/value.hpp>
#include <string>
#include <vector>

#include "api/chat/chat_turn.h"
#include "api/fields/json_fields.h"

namespace sluice {

// `messages` is an array, or a string that holds one. Errors go to the report.
std::vector<ChatTurn> read_chat_turns(const boost::json::value& messages, const std::string& path,
                                      FieldReport& report);

}  // namespace sluice
