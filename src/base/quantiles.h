// Quantiles of measured values, by nearest rank.
//
// Thread rule: pure functions.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace sluice {

// The smallest value that at least `percent` of all are no larger than (nearest rank), of values in
// ascending order; at least one value, percent in (0, 100].
double percentile(std::span<const double> ascending, double percent);

struct Quantiles {
  std::size_t count = 0;
  double p50 = 0;
  double p95 = 0;
  double p99 = 0;
  double max = 0;
};

// All zero without values.
Quantiles quantiles_of(std::vector<double> values);

}  // namespace sluice
