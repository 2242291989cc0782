// Content blocks of the Anthropic API as text.
//
// A history is never refused for a block that is new or odd: its text is used if it has one, and it
// is reported as ignored otherwise. Refused is what the answer would have to look at and this
// server cannot show the model: PDF files, and pictures elsewhere than in turns and tool results.
#pragma once

#include <boost/json/value.hpp>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "api/anthropic/messages_tools.h"
#include "api/chat/chat_turn.h"
#include "api/fields/json_fields.h"

namespace sluice {

// What reading blocks needs beside them. Both outlive it.
struct BlockContext {
  const ToolTexts& tools;  // shown where a block refers to one
  FieldReport& report;
};

// `type` is the block's; `marked`: it has a `cache_control`.
using ReadBlock = std::function<void(JsonFields& block, const std::string& type, bool marked)>;

// Calls `read` with each block of a list, or with a string as if it were one text block, and
// reports what it did not ask for. Errors: content of another type, a block without a type.
void for_each_block(const boost::json::value& content, const std::string& path, FieldReport& report,
                    const ReadBlock& read);

// A block that stands for a text wherever it is; none: it stands for nothing. Pictures are refused.
std::optional<std::string> block_text(JsonFields& block, const std::string& type,
                                      BlockContext context);

// The texts of blocks, line by line. Pictures are refused.
std::string text_of_blocks(const boost::json::value& content, const std::string& path,
                           BlockContext context);

// The same as a turn, with pictures at their places.
void add_blocks(const boost::json::value& content, const std::string& path, BlockContext context,
                ChatTurn& turn);

// Error missing_parameter when it is not there.
std::string required_string(JsonFields& fields, std::string_view key);

// Appends `more`, after `between` if both have text.
void join(std::string& text, std::string_view more, std::string_view between);

}  // namespace sluice
