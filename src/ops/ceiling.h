// What this machine can do at most with all threads of a pool, measured beside whatever is judged
// by it: operations per second of the product instruction, bytes per second read from memory.
//
// Shared machines change their speed by the second, so a ceiling measured once says little: take a
// sample right before and right after a measurement and compare with the better one.
//
// Thread rule: one owner, who owns the pool.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "kernels/peak.h"
#include "platform/aligned_buffer.h"
#include "platform/thread_pool.h"

namespace sluice::ops {

struct Ceiling {
  double flop_per_s = 0.0;
  std::optional<double> int8_op_per_s;  // absent where the kernels have no such unit
  double read_byte_per_s = 0.0;

  // Member by member the larger.
  static Ceiling better_of(const Ceiling& a, const Ceiling& b);
};

class CeilingProbe {
 public:
  struct Options {
    std::size_t read_bytes = std::size_t{1} << 30;  // a multiple of 1 MiB, far above the caches
    double seconds = 0.06;                          // of each kind in one sample, about
  };
  // The clock and the pool must outlive the probe. Error resource_exhausted: no memory to read.
  static Result<CeilingProbe> create(const kernels::PeakLoops& loops, ThreadPool& pool,
                                     const Clock& clock, const Options& options);

  // The best of a few short runs of each kind.
  Ceiling sample();

  const kernels::PeakLoops& loops() const { return loops_; }
  std::size_t read_bytes() const { return memory_.size(); }

  // Over all samples so far (at least one); of each kind alone.
  Ceiling best() const;
  Ceiling median() const;

 private:
  CeilingProbe(const kernels::PeakLoops& loops, ThreadPool& pool, const Clock& clock,
               const Options& options, AlignedBuffer memory);

  double run_products(const kernels::PeakLoop& loop);
  double run_reads();

  kernels::PeakLoops loops_;
  ThreadPool* pool_;
  const Clock* clock_;
  Options options_;
  AlignedBuffer memory_;
  std::vector<float> kept_;  // one per worker: results of the reads
  std::vector<Ceiling> samples_;
};

}  // namespace sluice::ops
