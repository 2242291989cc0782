#include "api/answer/fence_tracker.h"

namespace sluice {

void FenceTracker::append(std::string_view text) {
  for (const char c : text) {
    if (c == '\n') {
      end_line();
      continue;
    }
    ++line_bytes_;
    const bool blank = c == ' ' || c == '\t' || c == '\r';
    if (c == '`') {
      line_ticks_ += ticks_ended_ ? 0 : 1;
      ticks_after_ = ticks_after_ || ticks_ended_;
    } else if (!blank || line_ticks_ > 0) {
      ticks_ended_ = true;
      text_after_ = text_after_ || !blank;
    }
  }
}

void FenceTracker::end_line() {
  constexpr std::size_t kTicksMin = 3;
  if (fence_ticks_ == 0) {
    fence_ticks_ = line_ticks_ >= kTicksMin && !ticks_after_ ? line_ticks_ : 0;
  } else if (line_ticks_ >= fence_ticks_ && !text_after_ && !ticks_after_) {
    fence_ticks_ = 0;
  }
  line_bytes_ = 0;
  line_ticks_ = 0;
  ticks_ended_ = false;
  text_after_ = false;
  ticks_after_ = false;
}

}  // namespace sluice
