// Content blocks of the Anthropic API, made into the turns all dialects share (chat_messages.h).
//
// A history is never refused for a block that is new or odd: its text is used if it has one, and it
// is reported as ignored otherwise. Refused is what the answer would have to look at and this
// server cannot show the model: pictures, PDF files, files behind a URL.
#pragma once

#include <boost/json/value.hpp>
#include <string>
#include <vector>

#include "api/chat_messages.h"
#include "api/json_fields.h"

namespace sluice {

// The `messages` of a request. Neighbours of one role become one turn; the tool results of a user
// message come before its text, in the order of the calls they answer.
std::vector<ChatTurn> read_anthropic_messages(const boost::json::value& messages,
                                              const std::string& path, FieldReport& report);

// A string or blocks, as `system` has them: one text, blocks set apart by a blank line. A line that
// tells a client's version and changes with every request is left out: it would make every prompt
// differ at its very beginning.
std::string read_anthropic_system(const boost::json::value& content, const std::string& path,
                                  FieldReport& report);

}  // namespace sluice
