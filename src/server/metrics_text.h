// Metrics as text: the exposition format 0.0.4 of Prometheus, written straight from snapshots.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/histogram.h"

namespace sluice {

struct MetricName {
  std::string_view name;  // [a-zA-Z_:][a-zA-Z0-9_:]*
  std::string_view help;  // one line
};

using MetricLabels = std::vector<std::pair<std::string_view, std::string_view>>;

class MetricsText {
 public:
  // Samples of one metric follow each other; they differ in their labels.
  void counter(const MetricName& metric, const MetricLabels& labels, double value);
  void gauge(const MetricName& metric, const MetricLabels& labels, double value);
  void histogram(const MetricName& metric, const MetricLabels& labels, const Histogram& values);

  std::string take() { return std::move(text_); }

  static constexpr std::string_view kContentType = "text/plain; version=0.0.4; charset=utf-8";

 private:
  void introduce(const MetricName& metric, std::string_view type);
  void sample(std::string_view name, std::string_view suffix, const MetricLabels& labels,
              double value);

  std::string text_;
  std::string_view last_name_;
};

}  // namespace sluice
