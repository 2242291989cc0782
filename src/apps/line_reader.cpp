#include "apps/line_reader.h"

#include <unistd.h>

#include <array>

namespace sluice::apps {

LineReader::Event LineReader::next(std::string& line) {
  for (;;) {
    if (take_line(line)) {
      return Event::line;
    }
    if (ended_) {
      return Event::end;
    }
    const bool readable = watch_->wait_readable(STDIN_FILENO);
    if (watch_->take_signal()) {
      buffer_.clear();
      return Event::interrupted;
    }
    if (!readable) {
      continue;
    }
    std::array<char, 4096> piece;
    const ssize_t count = read(STDIN_FILENO, piece.data(), piece.size());
    if (count <= 0) {
      ended_ = true;
    } else {
      buffer_.append(piece.data(), static_cast<std::size_t>(count));
    }
  }
}

bool LineReader::take_line(std::string& line) {
  const std::size_t newline = buffer_.find('\n');
  if (newline == std::string::npos && (!ended_ || buffer_.empty())) {
    return false;
  }
  line = buffer_.substr(0, newline);
  buffer_.erase(0, newline == std::string::npos ? buffer_.size() : newline + 1);
  return true;
}

}  // namespace sluice::apps
