// The inside of one tool call, from after <function=NAME> to its end, as the text of a JSON object
// that grows while the call comes in:
//
//   <parameter=path>\na.py\n</parameter>...   ->   {"path": "a.py", ...}
//
// Strings go out as they come, but for the longest tail that could belong to a closing tag; other
// values go out when they are complete. What is missing or broken is repaired: see append().
// Invariant: what was let out depends on the text so far, not on how it was cut.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "api/answer/call_markup.h"
#include "api/tools/tool_set.h"

namespace sluice {

class CallBodyParser {
 public:
  // tool: of this call; null when it is not declared. wrapped: the call began with <tool_call>.
  // `tools` must outlive this.
  CallBodyParser(const ToolSet& tools, const Tool* tool, bool wrapped);

  // A call whose arguments came in another form; only </tool_call> is still to come.
  static CallBodyParser after_arguments(const ToolSet& tools);

  // The arguments text that is certain now. A value without </parameter> also ends at the next
  // declared parameter; elements without a proper key and repeated keys are left out; text between
  // elements is dropped; a call without </function> or </tool_call> ends where another begins.
  std::string append(std::string_view text);

  // The text ends by the model's own choice: all that is open is closed.
  std::string finish();

  bool is_done() const { return state_ == State::done; }
  bool was_repaired() const { return repaired_; }

  // Text at the end of what was appended that is not part of this call; only once done.
  std::string_view rest() const { return held_; }

 private:
  enum class State { between, value_start, value, after_function, done };

  std::string advance(bool at_end);
  bool step_between(const Lookahead& ahead, std::string& out);
  void begin_parameter(const NamedTag& tag, std::string& out);
  bool step_value(const Lookahead& ahead, std::string& out);
  bool step_after_function(const Lookahead& ahead);
  struct Closer {
    Match match = Match::no;
    std::size_t size = 0;  // of the tag that belongs to the value
  };
  Closer match_closer(const Lookahead& ahead, bool line_start) const;
  bool is_new_parameter(std::string_view key) const;
  void take_value(std::size_t size, std::string& out);
  void end_value(std::string& out);
  void end_arguments(std::string& out);
  void drop(std::size_t size);

  const ToolSet* tools_;
  const Tool* tool_;
  bool wrapped_;
  State state_ = State::between;
  bool repaired_ = false;
  std::string held_;
  char previous_ = '>';     // the byte before held_
  std::size_t looked_ = 0;  // bytes of held_ in which no closing tag begins

  std::vector<std::string> keys_;        // given so far
  const ParameterType* type_ = nullptr;  // of the current value
  bool kept_ = false;                    // the current value is wanted
  std::string value_;                    // of types that go out when complete
};

}  // namespace sluice
