// The tools of a Responses request as tools of a chat request.
//
//   function    the same, under "function"
//   custom      a function with one string, "input"; its calls are told as custom_tool_call
//   namespace   its tools, each named after both; the reply splits the name again
//   (hints for tool_search, which is not there, have no effect: all tools are shown)
//   all others  run on OpenAI's servers (web_search, mcp, ...): dropped and reported as ignored,
//               because agents declare them whether or not a server has them
#pragma once

#include <boost/json/array.hpp>
#include <boost/json/value.hpp>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "api/fields/json_fields.h"
#include "api/fields/path_map.h"

namespace sluice {

// What the client calls a tool that the model knows by one name.
struct ToolTarget {
  std::string name_space = {};  // empty: none
  std::string name;
  bool custom = false;
};

using ToolTargets = std::map<std::string, ToolTarget, std::less<>>;  // by the model's name

// The one name by which the model knows a function of a namespace.
std::string flat_tool_name(std::string_view name_space, std::string_view name);

// The argument that holds the input of a custom tool.
inline constexpr std::string_view kCustomInput = "input";

class ResponseTools {
 public:
  ResponseTools(FieldReport& report, PathMap& paths) : report_(&report), paths_(&paths) {}

  // `path` is that of the array.
  void add(const boost::json::array& tools, const std::string& path);

  // Tools that came later in the conversation: those whose names are known are left out, because
  // every turn may bring them again.
  void add_later(const boost::json::array& tools, const std::string& path);

  // `tool_choice` for the chat request. Null after an error: a tool that is not there is forced.
  boost::json::value choice(const boost::json::value& wanted);

  const boost::json::array& chat_tools() const { return chat_tools_; }
  const ToolTargets& targets() const { return targets_; }

 private:
  void add_tool(const boost::json::value& value, const std::string& path,
                const std::string& name_space);
  void add_function(const boost::json::object& tool, ToolTarget target, const std::string& path);
  void add_custom(const boost::json::object& tool, ToolTarget target, const std::string& path);
  void add_namespace(const boost::json::object& tool, const std::string& path);
  boost::json::value named_tool(const boost::json::object& wanted, const std::string& path);
  boost::json::value allowed_tools(const boost::json::object& wanted, const std::string& path);
  void push(boost::json::object function, ToolTarget target, const std::string& path);

  FieldReport* report_;
  PathMap* paths_;
  boost::json::array chat_tools_;
  ToolTargets targets_;
  bool skip_known_ = false;
};

}  // namespace sluice
