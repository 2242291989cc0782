// Splits the text of a model into reasoning and content, wherever the stream is cut.
//
//   starts inside reasoning:  [\n] [<think> [\n]]  reasoning  [\n] </think> [\n[\n]]  content
//   starts in content:        everything is content, tags included
//
// Which of the two it is, the rendered prompt says, not the output. Reasoning ends at the first
// </think>; without one everything is reasoning, whatever ended the text. Later </think> are
// dropped. The bracketed newlines and tags belong to neither part.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace sluice {

enum class AnswerPart { reasoning, content, call };

// A piece of the input that belongs to one part: input bytes [begin, begin + text.size()).
struct AnswerSegment {
  AnswerPart part = AnswerPart::content;
  std::size_t begin = 0;  // counted from the first byte ever appended
  std::string text;       // not empty
};

class ReasoningParser {
 public:
  explicit ReasoningParser(bool starts_inside_reasoning);

  std::vector<AnswerSegment> append(std::string_view text);

  // What was held back, when the text ends.
  std::vector<AnswerSegment> finish();

  // Whether the next byte can still be reasoning.
  bool inside_reasoning() const { return state_ < State::gap; }

 private:
  enum class State { newline, tag, tag_newline, reasoning, gap, content, literal };

  void advance(bool at_end, std::vector<AnswerSegment>& segments);
  bool skip_opening(bool at_end);
  bool take_reasoning(bool at_end, std::vector<AnswerSegment>& segments);
  bool skip_gap();
  bool take_content(bool at_end, std::vector<AnswerSegment>& segments);
  void emit(AnswerPart part, std::size_t size, std::vector<AnswerSegment>& segments);
  void drop(std::size_t size);

  State state_;
  int gap_newlines_ = 0;
  std::string held_;
  std::size_t held_begin_ = 0;  // input position of held_[0]
};

}  // namespace sluice
