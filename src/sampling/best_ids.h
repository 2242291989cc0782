// The k best of many scores without sorting the rest.
// Order everywhere: higher score first, ties by lower id. Scores are never NaN.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "request/request.h"

namespace sluice {

// Fills ids[0, k) with the ids of the k best scores, best first. ids.size() >= scores.size() is
// scratch beyond k; 1 <= k <= scores.size(). One pass over the scores plus work on about 2k
// survivors. No allocation.
void best_ids(std::span<const float> scores, std::size_t k, std::span<TokenId> ids);

}  // namespace sluice
