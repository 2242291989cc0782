// What a load showed, as a table and as JSON (docs/BENCHMARKS.md says what each figure means).
//
// Thread rule: pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/quantiles.h"
#include "load/load_runner.h"

namespace sluice::load {

// Limits that a good request meets; none: not asked about.
struct Goals {
  std::optional<double> first_token_seconds = {};
  std::optional<double> inter_token_seconds = {};  // mean of the request
};

// Whether an answered request met them.
bool is_good(const RequestRecord& record, const Goals& goals);

struct Failures {
  std::string kind;  // as in RequestRecord
  std::int64_t count = 0;
  std::string example;
};

struct LoadReport {
  // How it was asked, in words of the command line.
  std::string url;
  std::string model;
  std::string workload;  // "agent", "trace FILE"
  std::string loop;      // "closed" or "open"
  std::int64_t users = 0;

  std::int64_t conversations = 0;
  std::int64_t answered = 0;
  std::int64_t failed = 0;
  std::int64_t interrupted = 0;
  std::vector<Failures> failures;  // by count
  double seconds = 0;

  std::int64_t usage_replies = 0;  // that said how many tokens they had
  std::int64_t prompt_tokens = 0;
  std::int64_t output_tokens = 0;

  Quantiles first_token;
  Quantiles inter_token;
  Quantiles whole;

  Goals goals;
  std::int64_t good = 0;

  std::int64_t cache_replies = 0;  // that said how much of the prompt was cached
  std::int64_t cache_prompt_tokens = 0;
  std::int64_t cached_tokens = 0;

  std::int64_t late_starts = 0;
  double late_seconds_max = 0;

  double per_second(std::int64_t count) const {
    return seconds > 0.0 ? static_cast<double>(count) / seconds : 0.0;
  }
  double hit_share() const {
    return cache_prompt_tokens == 0
               ? 0.0
               : static_cast<double>(cached_tokens) / static_cast<double>(cache_prompt_tokens);
  }
};

// Fills all but what the command line says.
LoadReport make_report(const LoadRun& run, const Goals& goals);

std::string to_text(const LoadReport& report);
std::string to_json(const LoadReport& report);  // one line

}  // namespace sluice::load
