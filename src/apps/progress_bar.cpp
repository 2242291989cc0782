#include "apps/progress_bar.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <utility>

namespace sluice::apps {
namespace {

constexpr std::size_t kBarColumns = 30;
constexpr double kRedrawSeconds = 0.05;

}  // namespace

ProgressBar::ProgressBar(std::string label, std::string unit, bool enabled)
    : label_(std::move(label)),
      unit_(std::move(unit)),
      enabled_(enabled && isatty(STDERR_FILENO) == 1),
      begin_(clock_.now()),
      last_draw_(begin_) {}

ProgressBar::~ProgressBar() {
  if (drawn_) {
    std::fputs("\r\x1b[K", stderr);  // back to column 0, clear to the end of the line
  }
}

void ProgressBar::update(std::size_t done, std::size_t total) {
  if (!enabled_ || total == 0) {
    return;
  }
  const Clock::TimePoint now = clock_.now();
  if (drawn_ && done < total && seconds_between(last_draw_, now) < kRedrawSeconds) {
    return;
  }
  last_draw_ = now;
  drawn_ = true;
  const std::string line = to_string({.label = label_,
                                      .unit = unit_,
                                      .done = done,
                                      .total = total,
                                      .seconds = seconds_between(begin_, now)});
  std::fprintf(stderr, "\r%s\x1b[K", line.c_str());
  std::fflush(stderr);
}

std::string to_string(const ProgressLine& line) {
  const double share =
      line.total == 0
          ? 1.0
          : std::min(1.0, static_cast<double>(line.done) / static_cast<double>(line.total));
  const auto filled = static_cast<std::size_t>(share * kBarColumns);
  const double rate = line.seconds > 0.0 ? static_cast<double>(line.done) / line.seconds : 0.0;
  return fmt::format("{} [{}{}] {:3.0f} % of {}, {}/s", line.label, std::string(filled, '#'),
                     std::string(kBarColumns - filled, '.'), share * 100.0,
                     format_amount(line.total, line.unit),
                     format_amount(static_cast<std::size_t>(rate), line.unit));
}

std::string format_amount(std::size_t amount, const std::string& unit) {
  return unit == "bytes" ? format_bytes(amount) : fmt::format("{} {}", amount, unit);
}

std::string format_bytes(std::size_t bytes) {
  constexpr std::array<const char*, 5> kUnits{"B", "KiB", "MiB", "GiB", "TiB"};
  if (bytes < 1024) {
    return fmt::format("{} B", bytes);
  }
  auto value = static_cast<double>(bytes);
  std::size_t unit = 0;
  while (value >= 1024.0 && unit + 1 < kUnits.size()) {
    value /= 1024.0;
    ++unit;
  }
  return fmt::format("{:.{}f} {}", value, value < 10.0 ? 2 : 1, kUnits[unit]);
}

}  // namespace sluice::apps
