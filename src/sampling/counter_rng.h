// Random numbers as a pure function of (seed, position): no state, so a preempted, resumed or
// re-batched sequence draws the same numbers. Philox4x32-10 of Salmon, Moraes, Dror and Shaw,
// "Parallel random numbers: as easy as 1, 2, 3" (SC 2011).
//
// Thread rule: pure functions.
#pragma once

#include <array>
#include <cstdint>

namespace sluice {

// Ten rounds over a 128-bit counter with a 64-bit key; words in the order of the paper.
std::array<std::uint32_t, 4> philox4x32(std::array<std::uint32_t, 4> counter,
                                        std::array<std::uint32_t, 2> key);

// Uniform on [0, 1), a multiple of 2^-53. The key is the seed, the counter is the position.
double uniform_at(std::uint64_t seed, std::int64_t position);

}  // namespace sluice
