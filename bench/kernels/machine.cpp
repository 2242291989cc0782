#include "bench/kernels/machine.h"

#include <algorithm>
#include <utility>

#include "base/checked_math.h"
#include "kernels/peak.h"
#include "kernels/select.h"

namespace sluice::bench {
namespace {

// Twice the caches of large servers; all copies of one case.
constexpr std::size_t kColdBytes = std::size_t{1} << 30;
constexpr std::size_t kQuickBytes = std::size_t{16} << 20;

}  // namespace

Result<std::unique_ptr<Machine>> Machine::create(const MachineOptions& options) {
  CpuFeatures cpu = detect_cpu_features();
  const kernels::KernelTable* table = SLUICE_TRY(kernels::select_kernels(cpu, options.forced_isa));
  const int threads = options.threads == 0 ? available_cpus() : options.threads;
  std::unique_ptr<Machine> machine(new Machine(std::move(cpu), *table, threads, options.quick));
  const ops::CeilingProbe::Options probe{.read_bytes = options.quick ? kQuickBytes : kColdBytes,
                                         .seconds = options.quick ? 0.002 : 0.03};
  machine->probe_ = std::make_unique<ops::CeilingProbe>(SLUICE_TRY(ops::CeilingProbe::create(
      kernels::peak_loops(*table, machine->cpu_), machine->pool_, machine->clock_, probe)));
  return machine;
}

Machine::Machine(CpuFeatures cpu, const kernels::KernelTable& table, int threads, bool quick)
    : cpu_(std::move(cpu)), table_(&table), pool_(threads), quick_(quick) {}

std::int64_t Machine::cold_copies(std::size_t bytes) const {
  const std::size_t wanted = quick_ ? kQuickBytes : kColdBytes;
  return static_cast<std::int64_t>(std::max<std::size_t>(1, ceil_div(wanted, bytes)));
}

}  // namespace sluice::bench
