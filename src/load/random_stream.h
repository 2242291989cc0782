// Random numbers of a seed, the same on every machine: what a workload says and when it says it.
// SplitMix64 (Steele, Lea, Flood 2014); good enough for words and arrivals, not for secrets.
//
// Thread rule: one owner.
#pragma once

#include <cmath>
#include <cstdint>

namespace sluice::load {

class RandomStream {
 public:
  // Streams of one seed with different numbers have nothing to do with each other.
  RandomStream(std::uint64_t seed, std::uint64_t number) : state_(seed) {
    state_ = next() ^ (number * 0xd1342543de82ef95U);
  }

  std::uint64_t next() {
    state_ += 0x9e3779b97f4a7c15U;
    std::uint64_t z = state_;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9U;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebU;
    return z ^ (z >> 31);
  }

  // On [0, 1), a multiple of 2^-53.
  double uniform() { return static_cast<double>(next() >> 11) * 0x1p-53; }

  // One of 0 .. count - 1; count >= 1.
  std::uint64_t below(std::uint64_t count) { return next() % count; }

  // Exponential with this mean: the gap between two arrivals of a Poisson process.
  double exponential(double mean) { return -mean * std::log1p(-uniform()); }

 private:
  std::uint64_t state_;
};

}  // namespace sluice::load
