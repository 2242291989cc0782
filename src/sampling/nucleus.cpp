#include "sampling/nucleus.h"

#include <array>
#include <bit>
#include <cstdint>

#include "base/check.h"

namespace sluice {
namespace {

// Non-negative floats order like their bit patterns, so the least kept weight is found digit by
// digit: the mass per value of the leading digit, then within the digit that crosses `wanted`.
struct Digit {
  unsigned shift;
  unsigned bits;
};
constexpr std::array<Digit, 3> kDigits{{{21, 11}, {10, 11}, {0, 10}}};
constexpr std::size_t kDigitValues = std::size_t{1} << 11;

struct Boundary {
  float least;   // the least weight that is kept (some of its ties may not be)
  double above;  // mass of all weights above it
};

Boundary find_boundary(std::span<const float> weights, double wanted) {
  std::uint32_t prefix = 0;
  std::uint32_t mask = 0;
  double above = 0.0;
  for (const Digit& digit : kDigits) {
    const std::uint32_t digit_mask = (1U << digit.bits) - 1U;
    std::array<double, kDigitValues> mass{};
    for (const float weight : weights) {
      const auto key = std::bit_cast<std::uint32_t>(weight);
      if ((key & mask) == prefix) {
        mass[(key >> digit.shift) & digit_mask] += static_cast<double>(weight);
      }
    }
    std::uint32_t chosen = 0;
    double above_chosen = above;
    double sum = above;
    for (std::uint32_t value = digit_mask + 1; value-- > 0 && sum < wanted;) {
      if (mass[value] > 0.0) {
        chosen = value;
        above_chosen = sum;
        sum += mass[value];
      }
    }
    prefix |= chosen << digit.shift;
    mask |= digit_mask << digit.shift;
    above = above_chosen;
  }
  return {.least = std::bit_cast<float>(prefix), .above = above};
}

}  // namespace

std::size_t nucleus(std::span<const float> weights, double wanted, std::span<TokenId> ids) {
  SLUICE_CHECK(ids.size() >= weights.size());
  const Boundary boundary = find_boundary(weights, wanted);
  SLUICE_CHECK(boundary.least > 0.0F);
  double sum = boundary.above;
  std::size_t count = 0;
  for (std::size_t id = 0; id < weights.size(); ++id) {
    const bool tie = weights[id] == boundary.least && sum < wanted;
    if (weights[id] > boundary.least || tie) {
      ids[count++] = static_cast<TokenId>(id);
      sum += tie ? static_cast<double>(weights[id]) : 0.0;
    }
  }
  return count;
}

}  // namespace sluice
