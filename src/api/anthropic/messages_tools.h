// `tools` and `tool_choice` of the Anthropic API, said in the form of chat completions, so that one
// reader (chat tools) checks them and one parser reads the calls.
//
// Tools that the API's own servers would run cannot be called here: they are left out and reported
// as ignored. Those it only defines (bash, text_editor, memory) get the parameters it documents.
#pragma once

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/value.hpp>
#include <map>
#include <string>
#include <string_view>

#include "api/fields/json_fields.h"

namespace sluice {

// Tools by name, each as the text that shows it to the model where a history refers to it.
using ToolTexts = std::map<std::string, std::string, std::less<>>;

struct AnthropicTools {
  boost::json::object chat_fields;  // "tools", "tool_choice", "parallel_tool_calls"; absent: unsaid
  ToolTexts texts;
  bool marked = false;  // `cache_control` on any of them
};

// Errors go to the report: a tool without a name, a choice without the tool it forces.
AnthropicTools read_anthropic_tools(JsonFields& body);

// One tool definition as chat completions have it, or null if it cannot be called here.
boost::json::value chat_tool(const boost::json::object& tool, const std::string& path,
                             FieldReport& report);

// Ids of calls have a prefix of their own in this API: "toolu_x" is "call_x" elsewhere.
std::string tool_use_id_of(std::string_view call_id);
std::string call_id_of(std::string_view tool_use_id);

// The text that shows such a tool to the model where a history refers to it.
std::string shown_tool(const boost::json::value& chat_tool);

}  // namespace sluice
