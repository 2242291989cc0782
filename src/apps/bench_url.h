// `sluice bench --url`: the load generator of load/, against any OpenAI-compatible server.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "apps/options.h"

namespace sluice::apps {

struct BenchUrlOptions {
  std::string url;  // empty: not asked for
  std::string model;
  std::string api_key;
  std::string workload = "chat";
  std::string trace;
  std::optional<std::int64_t> concurrency;
  std::optional<double> rate;
  std::optional<std::int64_t> requests;
  std::optional<double> seconds;
  std::optional<double> slo_ttft_ms;
  std::optional<double> slo_itl_ms;
  double timeout_seconds = 600;
  std::uint64_t seed = 1;
  std::optional<std::int64_t> turns;
  std::optional<std::int64_t> system_words;
  std::optional<std::int64_t> prompt_words;
  std::optional<std::int64_t> result_words;
  std::int64_t max_tokens = 128;
};

// Adds --url and what belongs to it to `command`, whose other options but --json and --quiet
// exclude it. The values live as long as the result or the command.
std::shared_ptr<const BenchUrlOptions> add_bench_url_options(CLI::App& command);

// The exit code: an error only when not one request was answered.
Result<int> run_bench_url(const BenchUrlOptions& options, bool json, bool quiet);

}  // namespace sluice::apps
