// Splits the text of a model into reasoning, content and tool calls, wherever the stream is cut.
//
//   starts inside reasoning:  [\n] [<think> [\n]]  reasoning  [\n] </think> [\n[\n]]  content
//   starts in content:        everything is content, these tags included
//
// Which of the two it is, the rendered prompt says, not the output. Reasoning ends at the first
// </think>, or where a call begins; without either everything is reasoning, whatever ended the
// text. Later </think> are dropped. The bracketed newlines and tags belong to neither part.
//
// A call begins at one of these; anything else that looks like one is text:
//   <tool_call> <function=NAME>           NAME declared
//   <tool_call> {"name": "NAME", ...}     NAME declared; not inside a ``` fence
//   <function=NAME>                       NAME declared; in content, at the start of a line or
//   after
//                                         a call, not inside a fence
//   <tool_call> <function=NAME> ...       NAME unknown, but the whole block without a fault
// <tool_call> is the model's own token, or spelled at the start of a line outside a fence.
// Inside calls: call_body_parser.h.
#pragma once

#include <cstddef>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/answer/call_body_parser.h"
#include "api/answer/fence_tracker.h"
#include "api/answer/json_call.h"
#include "api/tools/tool_set.h"

namespace sluice {

enum class AnswerPart { reasoning, content, call };

// A piece of one part. Of reasoning and content: the input bytes [begin, begin + text.size()). Of a
// call: the first piece has its name, each has new text of its arguments, the last one its end.
struct AnswerSegment {
  AnswerPart part = AnswerPart::content;
  std::size_t begin = 0;  // counted from the first byte ever appended; of a call: of its markup
  std::string text = {};
  std::optional<std::string> call_name = {};
  struct CallEnd {
    std::size_t input_end = 0;  // of its markup
    bool repaired = false;
  };
  std::optional<CallEnd> call_end = {};
};

class AnswerSplitter {
 public:
  // tools: null when the answer cannot have calls.
  AnswerSplitter(bool starts_inside_reasoning, std::shared_ptr<const ToolSet> tools);

  std::vector<AnswerSegment> append(std::string_view text);

  // The model's own token <tool_call> begins at this byte. Before any of it is appended.
  void expect_own_token(std::size_t begin) { own_tokens_.push_back(begin); }

  // What was held back, when the text ends. cut: not by the model's choice; an open call then stays
  // open.
  std::vector<AnswerSegment> finish(bool cut);

  // <tool_call> where a call may begin, but none did: that many are text.
  std::size_t literal_call_count() const { return literal_call_count_; }

  // Whether the next byte can still be reasoning.
  bool inside_reasoning() const { return state_ < State::gap; }

  // Input bytes that are known to be reasoning, from the first one, the tag that ended it included.
  std::size_t reasoning_size() const { return inside_reasoning() ? held_begin_ : reasoning_size_; }

 private:
  enum class State { newline, tag, tag_newline, reasoning, gap, content, call };

  // What begins at the front of a text.
  struct Opener {
    Match match = Match::no;
    std::size_t size = 0;  // of what comes before the body
    std::string name = {};
    bool wrapped = false;
    std::optional<std::string> arguments = {};  // when complete
    bool closed = false;                        // nothing of the call follows
    bool refused = false;                       // no call, after the tag of one
  };

  void advance(bool at_end, std::vector<AnswerSegment>& segments);
  bool skip_opening(bool at_end);
  bool skip_gap();
  bool take_region(bool at_end, std::vector<AnswerSegment>& segments);
  bool take_tag(std::size_t at, bool at_end, std::vector<AnswerSegment>& segments, Match& match);
  Opener find_opener(const Lookahead& ahead);
  Opener find_wrapped_opener(const Lookahead& ahead);
  Opener try_unknown_call(const Lookahead& ahead, const NamedTag& tag, std::size_t head_size);
  Opener try_json_call(const Lookahead& ahead, std::size_t head_size);
  void open_call(const Opener& opener, std::vector<AnswerSegment>& segments);
  bool take_call(bool at_end, std::vector<AnswerSegment>& segments);
  void end_call(bool repaired, AnswerSegment& last);
  void end_reasoning();
  void emit(AnswerPart part, std::size_t size, std::vector<AnswerSegment>& segments);
  void drop(std::size_t size);

  std::shared_ptr<const ToolSet> tools_;
  State state_;
  bool drops_close_tags_;
  bool cut_ = false;
  std::size_t literal_call_count_ = 0;
  int gap_newlines_ = 0;
  std::string held_;
  std::size_t held_begin_ = 0;          // input position of held_[0]
  std::size_t reasoning_size_ = 0;      // once it ended
  std::deque<std::size_t> own_tokens_;  // input positions of the model's own <tool_call>

  // Of the current part:
  FenceTracker lines_;       // has seen held_ up to looked_
  std::size_t looked_ = 0;   // bytes of held_ in which nothing begins
  bool after_call_ = false;  // only white space since the last call

  // While a call is undecided, its front is held_[looked_].
  struct Trial {
    CallBodyParser body;
    std::size_t fed = 0;  // input position
    std::string arguments;
  };
  std::optional<Trial> unknown_call_;
  std::optional<JsonObjectEnd> json_end_;

  std::optional<CallBodyParser> body_;  // of the open call
  std::size_t call_begin_ = 0;
};

}  // namespace sluice
