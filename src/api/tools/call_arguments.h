// The arguments of a tool call in a conversation's history, as an object for the template.
#pragma once

#include <boost/json/object.hpp>
#include <boost/json/value.hpp>

namespace sluice {

// An object stays; a string is parsed. A string that was cut off keeps its complete members, and
// anything else becomes {}: a call that was once truncated must not make every later turn fail.
boost::json::object tool_call_arguments(const boost::json::value& arguments);

}  // namespace sluice
