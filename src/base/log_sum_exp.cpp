#include "base/log_sum_exp.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"

namespace sluice {

double log_sum_exp(std::span<const float> scores) {
  SLUICE_CHECK(!scores.empty());
  const double largest = std::ranges::max(scores);
  double sum = 0.0;
  for (const float score : scores) {
    sum += std::exp(score - largest);
  }
  return largest + std::log(sum);
}

}  // namespace sluice
