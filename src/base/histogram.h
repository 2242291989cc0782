// How often which values were seen: counts by upper bound, as Prometheus has them.
// Plain data of fixed size, so that a copy is a snapshot. Thread rule: one owner.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "base/check.h"

namespace sluice {

class Histogram {
 public:
  static constexpr std::size_t kBoundsMax = 24;

  // Ascending upper bounds, at most kBoundsMax; they must outlive the histogram.
  explicit Histogram(std::span<const double> bounds) : bounds_(bounds) {
    SLUICE_CHECK(bounds.size() <= kBoundsMax);
    SLUICE_CHECK(std::ranges::is_sorted(bounds));
  }

  void add(double value) {
    const auto bound = std::ranges::lower_bound(bounds_, value);  // a bound belongs to its bucket
    ++counts_[static_cast<std::size_t>(bound - bounds_.begin())];
    sum_ += value;
  }

  std::span<const double> bounds() const { return bounds_; }
  // Of each bucket alone; one more than bounds: the last is of what is above all of them.
  std::span<const std::int64_t> counts() const {
    return std::span(counts_).first(bounds_.size() + 1);
  }
  double sum() const { return sum_; }
  std::int64_t count() const {
    std::int64_t all = 0;
    for (const std::int64_t count : counts()) {
      all += count;
    }
    return all;
  }

 private:
  std::span<const double> bounds_;
  std::array<std::int64_t, kBoundsMax + 1> counts_ = {};
  double sum_ = 0.0;
};

}  // namespace sluice
