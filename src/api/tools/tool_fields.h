// The tools of a request: what the template shows the model, what the parser of calls knows, and
// whether the model may, must or must not call.
#pragma once

#include <boost/json/array.hpp>
#include <boost/json/value.hpp>
#include <memory>
#include <string>

#include "api/fields/constraint_fields.h"
#include "api/fields/json_fields.h"
#include "api/fields/request_limits.h"
#include "api/tools/tool_set.h"
#include "text/grammar_cache.h"

namespace sluice {

inline constexpr std::size_t kToolsMax = 1024;
inline constexpr std::size_t kToolNameBytesMax = 256;

struct ToolUse {
  std::shared_ptr<const ToolSet> tools = {};  // null: no tools, no calls
  bool forbidden = false;                     // tools are shown, but must not be called
  bool one_call = false;                      // the answer ends after the first call
  bool must_call = false;
  std::shared_ptr<const CompiledGrammar> grammar = {};  // of the content; null: free
  // Of calls that come by themselves, from <tool_call> on; null: as the model likes.
  std::shared_ptr<const CompiledGrammar> calls = {};
};

struct ToolFields {
  ToolUse use;
  boost::json::array prompt_tools;  // the template's "tools", as sent; empty: none
};

// tools, tool_choice and parallel_tool_calls of /v1/chat/completions. Order of tools and of keys
// stays as sent. Tools with defer_loading can be called, but are not in the prompt.
// Choices that force a call, or leave some tools out, become a grammar of the content; calls of
// others keep to one, too. limits.grammars may be null: then the former are refused, the latter
// free.
ToolFields read_tool_fields(JsonFields& body, const RequestLimits& limits);

// Gives the answer the grammars of its calls. One of the content takes the place of another form: a
// call that must come leaves no room for it; calls that may come and another form are refused
// together.
void take_call_grammar(const ToolUse& use, ConstraintFields& constraint, FieldReport& report);

// Adds a tool; `path` is where the request names it. Errors: the name, a name given before, the
// number of tools, parameters that are no object.
void declare_tool(const std::string& name, const boost::json::value* parameters,
                  const std::string& path, ToolSet& tools, FieldReport& report,
                  bool strict = false);

}  // namespace sluice
