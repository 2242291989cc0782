// What all cases of bench/kernels share: the chosen kernels, the pool, the ceilings.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "base/clock.h"
#include "base/result.h"
#include "kernels/kernel_table.h"
#include "ops/ceiling.h"
#include "platform/cpu_features.h"
#include "platform/thread_pool.h"

namespace sluice::bench {

struct MachineOptions {
  std::string forced_isa;  // empty: the best
  int threads = 0;         // 0: all CPUs available
  bool quick = false;      // small buffers: shows that it works, measures nothing
};

class Machine {
 public:
  static Result<std::unique_ptr<Machine>> create(const MachineOptions& options);
  Machine(const Machine&) = delete;
  Machine& operator=(const Machine&) = delete;

  const CpuFeatures& cpu() const { return cpu_; }
  const kernels::KernelTable& table() const { return *table_; }
  ThreadPool& pool() { return pool_; }
  ops::CeilingProbe& probe() { return *probe_; }

  // Copies of `bytes` of data to go through in turn, so that each one comes from memory and not
  // from a cache, as in a model. At least 1.
  std::int64_t cold_copies(std::size_t bytes) const;

 private:
  Machine(CpuFeatures cpu, const kernels::KernelTable& table, int threads, bool quick);

  CpuFeatures cpu_;
  const kernels::KernelTable* table_;
  SteadyClock clock_;
  ThreadPool pool_;
  bool quick_;
  std::unique_ptr<ops::CeilingProbe> probe_;
};

}  // namespace sluice::bench
