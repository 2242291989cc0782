// The program bench/kernels: every operator beside the ceilings of the machine. Its own options are
// read here, those that begin with --benchmark_ by Google Benchmark.
#include <benchmark/benchmark.h>
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "bench/kernels/kernel_case.h"
#include "bench/kernels/machine.h"
#include "bench/kernels/report.h"

namespace sluice::bench {
namespace {

constexpr int kExitError = 1;
constexpr int kExitUsage = 2;
constexpr int kThreadsMax = 1024;

struct Options {
  int threads = 0;
  bool quick = false;
  bool json = false;
};

// Google Benchmark reads these before what was typed, which therefore wins.
std::vector<std::string> benchmark_defaults(bool quick) {
  return {std::string("--benchmark_repetitions=") + (quick ? "1" : "3"),
          std::string("--benchmark_min_time=") + (quick ? "0.001" : "0.2")};
}

void initialize_benchmark(const char* program, const std::vector<std::string>& typed, bool quick) {
  std::vector<std::string> words{program};
  for (const std::string& word : benchmark_defaults(quick)) {
    words.push_back(word);
  }
  words.insert(words.end(), typed.begin(), typed.end());
  std::vector<char*> arguments;
  for (std::string& word : words) {
    arguments.push_back(word.data());
  }
  int count = static_cast<int>(arguments.size());
  arguments.push_back(nullptr);
  benchmark::Initialize(&count, arguments.data());
}

std::vector<KernelCase> all_cases() {
  std::vector<KernelCase> all;
  for (const auto& list :
       {gemm_cases, gated_delta_cases, attention_cases, row_cases, vision_cases}) {
    for (KernelCase& kernel : list()) {
      all.push_back(std::move(kernel));
    }
  }
  return all;
}

int measure(const Options& options) {
  const char* forced = std::getenv("SLUICE_FORCE_ISA");
  Result<std::unique_ptr<Machine>> machine =
      Machine::create({.forced_isa = forced == nullptr ? "" : forced,
                       .threads = options.threads,
                       .quick = options.quick});
  if (!machine) {
    fmt::print(stderr, "bench/kernels: error: {}{}\n",
               forced == nullptr ? "" : "SLUICE_FORCE_ISA: ", machine.error().message);
    return kExitError;
  }
  const std::vector<KernelCase> cases = all_cases();
  for (const KernelCase& kernel : cases) {
    register_case(kernel, **machine);
  }
  const bool shows_progress = isatty(STDERR_FILENO) == 1;
  Collector collector(cases, shows_progress);
  const std::size_t matched = benchmark::RunSpecifiedBenchmarks(&collector);
  if (shows_progress) {
    fmt::print(stderr, "\r\x1b[K");
  }
  if (matched == 0) {
    fmt::print(stderr, "bench/kernels: error: no case has that name\n");
    return kExitError;
  }
  const std::vector<KernelResult> results = collector.results();
  if (results.empty()) {  // they were only to be listed
    return 0;
  }
  fmt::print("{}{}", options.json ? to_json(results, **machine) : to_text(results, **machine),
             options.json ? "\n" : "");
  return 0;
}

int run(int argc, char** argv) {
  Options options;
  CLI::App program("Every operator of Sluice beside what this machine can do at most.", "kernels");
  program.footer(
      "--benchmark_filter=REGEX, --benchmark_repetitions=N, --benchmark_min_time=SECONDS and the\n"
      "other options of Google Benchmark are taken too; --benchmark_list_tests=true lists the "
      "cases.\nSLUICE_FORCE_ISA=ref|avx2|avx512|amx chooses the kernels.");
  program.add_option("--threads", options.threads, "Threads of the pool; 0: all CPUs available")
      ->type_name("N")
      ->check(CLI::Range(0, kThreadsMax));
  program.add_flag("--quick", options.quick, "Small data, one repetition: does it work?");
  program.add_flag("--json", options.json, "The results as one JSON object");
  program.allow_extras();
  try {
    program.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return program.exit(error) == 0 ? 0 : kExitUsage;
  }
  const std::vector<std::string> typed = program.remaining();
  for (const std::string& word : typed) {
    if (!word.starts_with("--benchmark_") && !word.starts_with("--v=")) {
      fmt::print(stderr, "bench/kernels: error: {} is no option\n", word);
      return kExitUsage;
    }
  }
  initialize_benchmark(argv[0], typed, options.quick);
  return measure(options);
}

}  // namespace
}  // namespace sluice::bench

int main(int argc, char** argv) {
  try {
    return sluice::bench::run(argc, argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "bench/kernels: error: %s\n", error.what());
    return sluice::bench::kExitError;
  }
}
