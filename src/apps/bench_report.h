// What `sluice bench` found, as a table and as JSON (docs/BENCHMARKS.md says what each figure
// means).
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "model/step_cost.h"
#include "ops/ceiling.h"

namespace sluice::apps {

// Runs of one case and what the machine could do around them.
struct BenchRuns {
  std::vector<double> seconds;  // of each run or step; at least one
  ops::Ceiling ceiling;         // the better of right before and right after
};

// Tokens per second of the middle and of the best run, beside the most the ceilings allow.
struct BenchRate {
  std::size_t runs = 0;
  double tok_per_s = 0.0;
  double tok_per_s_best = 0.0;
  double ceiling_tok_per_s = 0.0;
  bool compute_bound = false;  // else bound by memory

  double percent_of_ceiling() const { return 100.0 * tok_per_s / ceiling_tok_per_s; }
};

// tokens: made by each run, which costs `cost`.
BenchRate bench_rate(const BenchRuns& runs, std::int64_t tokens, const StepCost& cost);

struct PrefillFigure {
  std::int64_t tokens = 0;
  BenchRate rate;
};

struct DecodeFigure {
  std::int64_t context = 0;
  std::int64_t batch = 0;
  BenchRate rate;
};

// A case that was not measured, and why.
struct SkippedCase {
  std::string what;  // "decode at context 32768, batch 16"
  std::string reason;
};

struct BenchReport {
  std::string version;
  std::string cpu;
  std::string kernels;
  int threads = 0;

  std::string model;
  std::int64_t layers = 0;
  std::string_view weights = "bf16";  // preset
  std::size_t weight_bytes = 0;       // packed, read by every step
  std::size_t embedding_bytes = 0;    // rows read one by one
  std::size_t workspace_bytes = 0;
  std::int64_t kv_bytes_per_token = 0;
  std::size_t state_bytes_per_sequence = 0;
  std::size_t peak_resident_bytes = 0;

  std::string product_loop;  // "amx bf16"
  std::size_t read_bytes = 0;
  ops::Ceiling ceiling_best;
  ops::Ceiling ceiling_median;

  std::vector<PrefillFigure> prefill;
  std::vector<DecodeFigure> decode;
  std::vector<SkippedCase> skipped;
};

std::string to_text(const BenchReport& report);
std::string to_json(const BenchReport& report);  // one line

}  // namespace sluice::apps
