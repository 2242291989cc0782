// Where a text stands with respect to lines and to the ``` fences of Markdown.
//
// A line that begins with three or more backticks (blanks before them do not count) opens a fence;
// a line of nothing but at least as many closes it. ```code``` in one line is no fence.
#pragma once

#include <cstddef>
#include <string_view>

namespace sluice {

class FenceTracker {
 public:
  void append(std::string_view text);

  bool at_line_start() const { return line_bytes_ == 0; }

  // Only whole lines count.
  bool inside_fence() const { return fence_ticks_ > 0; }

 private:
  void end_line();

  std::size_t fence_ticks_ = 0;  // of the open fence
  std::size_t line_bytes_ = 0;
  std::size_t line_ticks_ = 0;  // at the beginning of the line
  bool ticks_ended_ = false;
  bool text_after_ = false;   // other than blanks, behind the ticks
  bool ticks_after_ = false;  // a backtick behind other text
};

}  // namespace sluice
