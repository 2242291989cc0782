// Grammars of tool calls, for constrained sampling (text/grammar_matcher.h): of answers that must
// call, and of calls that a model makes by itself (text/call_watch.h).
//
// The form is that of the template. Names are those of the tools, keys those they declare (any, if
// the schema says that there may be others), in any order. A value may hold whatever a value may
// hold, closing tags too: only the token </tool_call> ends a call. For tools declared strict the
// parameters come in the declared order, the required ones all, and values are written as their
// types are; objects and arrays only begin and end so.
#pragma once

#include <string>
#include <vector>

#include "api/tools/tool_set.h"

namespace sluice {

struct CallGrammarOptions {
  std::vector<std::string> allowed = {};  // names; empty: all tools
  bool one_call = false;                  // not several
  bool may_answer = false;                // text instead of calls, or before them, is fine too
  bool free_form = false;                 // white space around tags is the model's
  // Types and required parameters hold for tools that are not strict, too: the required ones come
  // in the declared order, the others between them wherever the model likes.
  bool typed = false;
};

// Lark. Needs a tokenizer to which <tool_call> and </tool_call> are tokens.
std::string make_call_grammar(const ToolSet& tools, const CallGrammarOptions& options);

}  // namespace sluice
