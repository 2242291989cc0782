// Lines from standard input, so that a signal can interrupt the waiting. Thread rule: one owner.
#pragma once

#include <string>

#include "apps/signal_watch.h"

namespace sluice::apps {

class LineReader {
 public:
  enum class Event { line, end, interrupted };

  explicit LineReader(SignalWatch& watch) : watch_(&watch) {}

  // Waits for the next line (without its newline; the last one may lack it). end: no more input,
  // or a read error. interrupted: a signal came; what was typed so far on this line is dropped.
  Event next(std::string& line);

 private:
  bool take_line(std::string& line);

  SignalWatch* watch_;
  std::string buffer_;
  bool ended_ = false;
};

}  // namespace sluice::apps
