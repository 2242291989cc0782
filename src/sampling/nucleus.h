// The nucleus of top-p sampling in linear time: no sorting, however flat the distribution.
#pragma once

#include <cstddef>
#include <span>

#include "request/request.h"

namespace sluice {

// The fewest best weights whose sum reaches `wanted`; among equal weights the lower ids. Fills
// ids[0, result) ascending; ids.size() >= weights.size(). Weights are finite and >= 0, one at least
// is > 0, wanted > 0; when rounding keeps the sum below `wanted`, all positive weights are kept.
// Sums are fp64 in a fixed order.
std::size_t nucleus(std::span<const float> weights, double wanted, std::span<TokenId> ids);

}  // namespace sluice
