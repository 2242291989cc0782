#include "server/metrics_text.h"

#include <fmt/format.h>

#include <cmath>
#include <iterator>

namespace sluice {
namespace {

// Inside the quotes of a label.
std::string escaped(std::string_view value) {
  std::string text;
  for (const char c : value) {
    if (c == '\\' || c == '"') {
      text += '\\';
    }
    text += c == '\n' ? std::string("\\n") : std::string(1, c);
  }
  return text;
}

// Counts have no exponent or fraction, however large.
std::string number(double value) {
  constexpr double kExactMax = 9007199254740992.0;  // 2^53
  return value == std::floor(value) && std::fabs(value) < kExactMax ? fmt::format("{:.0f}", value)
                                                                    : fmt::format("{}", value);
}

}  // namespace

void MetricsText::introduce(const MetricName& metric, std::string_view type) {
  if (metric.name == last_name_) {
    return;
  }
  last_name_ = metric.name;
  fmt::format_to(std::back_inserter(text_), "# HELP {0} {1}\n# TYPE {0} {2}\n", metric.name,
                 metric.help, type);
}

void MetricsText::sample(std::string_view name, std::string_view suffix, const MetricLabels& labels,
                         double value) {
  fmt::format_to(std::back_inserter(text_), "{}{}", name, suffix);
  char separator = '{';
  for (const auto& [key, text] : labels) {
    fmt::format_to(std::back_inserter(text_), "{}{}=\"{}\"", separator, key, escaped(text));
    separator = ',';
  }
  fmt::format_to(std::back_inserter(text_), "{} {}\n", labels.empty() ? "" : "}", number(value));
}

void MetricsText::counter(const MetricName& metric, const MetricLabels& labels, double value) {
  introduce(metric, "counter");
  sample(metric.name, "", labels, value);
}

void MetricsText::gauge(const MetricName& metric, const MetricLabels& labels, double value) {
  introduce(metric, "gauge");
  sample(metric.name, "", labels, value);
}

void MetricsText::histogram(const MetricName& metric, const MetricLabels& labels,
                            const Histogram& values) {
  introduce(metric, "histogram");
  MetricLabels bucket = labels;
  bucket.emplace_back("le", "");
  std::int64_t up_to = 0;
  for (std::size_t i = 0; i < values.counts().size(); ++i) {
    const bool last = i == values.bounds().size();
    const std::string bound = last ? "+Inf" : fmt::format("{}", values.bounds()[i]);
    bucket.back().second = bound;
    up_to += values.counts()[i];
    sample(metric.name, "_bucket", bucket, static_cast<double>(up_to));
  }
  sample(metric.name, "_sum", labels, values.sum());
  sample(metric.name, "_count", labels, static_cast<double>(up_to));
}

}  // namespace sluice
