// One line of progress on stderr while something long runs. Writes nothing when stderr is not a
// terminal. Thread rule: one owner.
#pragma once

#include <cstddef>
#include <string>

#include "base/clock.h"

namespace sluice::apps {

class ProgressBar {
 public:
  // `label` is what is going on ("loading"), `unit` what is counted: "bytes" or a plural noun.
  // enabled = false: never writes.
  ProgressBar(std::string label, std::string unit, bool enabled);
  ~ProgressBar();  // removes the line
  ProgressBar(const ProgressBar&) = delete;
  ProgressBar& operator=(const ProgressBar&) = delete;

  // done of total units; redraws at most every 50 ms. total = 0 counts as nothing to do.
  void update(std::size_t done, std::size_t total);

 private:
  std::string label_;
  std::string unit_;
  bool enabled_;
  bool drawn_ = false;
  SteadyClock clock_;
  Clock::TimePoint begin_;
  Clock::TimePoint last_draw_;
};

// An amount of `unit`: "1.50 GiB" when the unit is bytes, else "150 tokens".
std::string format_amount(std::size_t amount, const std::string& unit);

struct ProgressLine {
  std::string label;
  std::string unit;
  std::size_t done = 0;
  std::size_t total = 0;
  double seconds = 0.0;
};

// The text of the line: label, bar, percent, rate.
std::string to_string(const ProgressLine& line);

// "1.50 GiB", "12.0 MiB", "640 B".
std::string format_bytes(std::size_t bytes);

}  // namespace sluice::apps
