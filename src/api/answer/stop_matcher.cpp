#include "api/answer/stop_matcher.h"

#include <algorithm>
#include <utility>

namespace sluice {

StopMatcher::StopMatcher(std::vector<std::string> stops, bool keep_match)
    : stops_(std::move(stops)), keep_match_(keep_match) {
  std::erase_if(stops_, [](const std::string& stop) { return stop.empty(); });
}

std::string StopMatcher::append(std::string_view text) {
  if (matched_) {
    return {};
  }
  buffer_ += text;
  std::size_t match_end = std::string::npos;
  for (const std::string& stop : stops_) {
    const std::size_t at = buffer_.find(stop);
    if (at == std::string::npos) {
      continue;
    }
    const std::size_t end = at + stop.size();
    const bool longer = end == match_end && stop.size() > matched_->size();
    if (!matched_ || end < match_end || longer) {
      match_end = end;
      matched_ = stop;
    }
  }
  if (matched_) {
    buffer_.resize(keep_match_ ? match_end : match_end - matched_->size());
    return std::exchange(buffer_, {});
  }
  const std::size_t held = held_size();
  std::string out = buffer_.substr(0, buffer_.size() - held);
  buffer_.erase(0, out.size());
  return out;
}

std::string StopMatcher::finish() {
  return std::exchange(buffer_, {});
}

std::size_t StopMatcher::held_size() const {
  std::size_t held = 0;
  for (const std::string& stop : stops_) {
    held = std::max(held, partial_match_size(buffer_, stop));
  }
  return held;
}

std::size_t partial_match_size(std::string_view text, std::string_view word) {
  std::size_t size = std::min(text.size(), word.size() - 1);
  while (size > 0 && !text.ends_with(word.substr(0, size))) {
    --size;
  }
  return size;
}

}  // namespace sluice
