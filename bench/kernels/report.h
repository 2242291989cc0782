// What bench/kernels found: every case beside the ceilings measured around it, as a table and as
// JSON.
#pragma once

#include <benchmark/benchmark.h>

#include <map>
#include <string>
#include <vector>

#include "bench/kernels/kernel_case.h"
#include "bench/kernels/machine.h"

namespace sluice::bench {

// One timed repetition of a case.
struct Repetition {
  double seconds = 0.0;  // of one call
  ops::Ceiling ceiling;  // the better of right before and right after
};

struct KernelResult {
  KernelCase kernel;
  std::vector<Repetition> repetitions;  // at least one

  // Of the middle repetition: the machine's usual state. Shares are of the ceilings of each
  // repetition, the middle one again.
  double seconds() const;
  double seconds_best() const;
  double read_percent() const;
  double product_percent() const;
};

// Takes the place of Google Benchmark's console output: collects, and says on stderr what is done.
class Collector : public benchmark::BenchmarkReporter {
 public:
  Collector(std::vector<KernelCase> cases, bool shows_progress);

  bool ReportContext(const Context& context) override;
  void ReportRuns(const std::vector<Run>& runs) override;

  // In the order of the cases; those that ran.
  std::vector<KernelResult> results() const;

 private:
  std::vector<KernelCase> cases_;
  std::map<std::string, std::vector<Repetition>> repetitions_;
  bool shows_progress_;
};

// Registers a case with Google Benchmark under its name. machine must outlive the run.
void register_case(const KernelCase& kernel, Machine& machine);

std::string to_text(const std::vector<KernelResult>& results, Machine& machine);
std::string to_json(const std::vector<KernelResult>& results, Machine& machine);  // one line

}  // namespace sluice::bench
