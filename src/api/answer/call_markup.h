// The tags of tool calls at the front of a text, and what makes a closing tag a closing tag.
//
//   <tool_call>\n<function=NAME>\n<parameter=KEY>\nVALUE\n</parameter>\n</function>\n</tool_call>
//
// Values are not escaped: a file that an agent writes may hold these tags. A closing tag counts
// only by what follows it (white space skipped):
//
//   </parameter>  before <parameter=, a </function> that counts, </tool_call>, <tool_call>, the end
//   </function>   before </tool_call>, <tool_call>, a declared <function=NAME>, the end
//   </tool_call>  before <tool_call>, the end
//
// All functions are pure. `more` means that a longer text could change the answer, so results do
// not depend on how a stream is cut.
#pragma once

#include <cstddef>
#include <string_view>

#include "api/tools/tool_set.h"

namespace sluice {

inline constexpr std::string_view kCallOpen = "<tool_call>";
inline constexpr std::string_view kCallClose = "</tool_call>";
inline constexpr std::string_view kFunctionOpen = "<function";
inline constexpr std::string_view kFunctionClose = "</function>";
inline constexpr std::string_view kParameterOpen = "<parameter";
inline constexpr std::string_view kParameterClose = "</parameter>";

enum class Match { no, more, yes };

// What is known of a stream from some position on. at_end: nothing follows.
struct Lookahead {
  std::string_view text;
  bool at_end = false;

  Lookahead after(std::size_t size) const { return {text.substr(size), at_end}; }
  Lookahead after_space() const;
};

Match match_tag(const Lookahead& ahead, std::string_view tag);

// "<function=NAME>" and "<parameter=KEY>". Blanks around the = and the name do not count; the name
// has no white space, '<' or '>'.
struct NamedTag {
  Match match = Match::no;
  std::string_view name;
  std::size_t size = 0;       // of the whole tag
  std::size_t head_size = 0;  // up to and with the =; also when there is no proper name
};
NamedTag match_named_tag(const Lookahead& ahead, std::string_view word);

Match match_declared_function(const Lookahead& ahead, const ToolSet& tools);

// `ahead` is what follows the closing tag.
Match closes_parameter(const Lookahead& ahead, const ToolSet& tools);
Match closes_function(const Lookahead& ahead, const ToolSet& tools);
Match closes_call(const Lookahead& ahead);

}  // namespace sluice
