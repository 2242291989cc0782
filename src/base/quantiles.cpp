#include "base/quantiles.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"

namespace sluice {

double percentile(std::span<const double> ascending, double percent) {
  SLUICE_CHECK(!ascending.empty() && percent > 0.0 && percent <= 100.0);
  const double rank = std::ceil(percent * static_cast<double>(ascending.size()) / 100.0);
  return ascending[std::min(ascending.size(), static_cast<std::size_t>(rank)) - 1];
}

Quantiles quantiles_of(std::vector<double> values) {
  if (values.empty()) {
    return {};
  }
  std::ranges::sort(values);
  return {.count = values.size(),
          .p50 = percentile(values, 50),
          .p95 = percentile(values, 95),
          .p99 = percentile(values, 99),
          .max = values.back()};
}

}  // namespace sluice
