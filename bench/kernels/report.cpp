#include "bench/kernels/report.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>
#include <cstdio>
#include <iterator>
#include <memory>
#include <utility>

namespace sluice::bench {
namespace {

namespace json = boost::json;

constexpr double kTera = 1e12;
constexpr double kGiga = 1e9;
// Names of the counters that carry a repetition's ceilings to the collector.
constexpr const char* kProductCounter = "ceiling_flop_per_s";
constexpr const char* kReadCounter = "ceiling_read_byte_per_s";

double middle(std::vector<double> values) {
  const auto half = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::ranges::nth_element(values, half);
  return *half;
}

template <typename F>
double middle_of(const std::vector<Repetition>& repetitions, const F& value) {
  std::vector<double> values;
  std::ranges::transform(repetitions, std::back_inserter(values), value);
  return middle(std::move(values));
}

// Data prepared for the case that runs now. Google Benchmark calls a case several times over to
// learn how often to repeat it.
struct Prepared {
  std::string name;
  Body body;
};

void run_case(benchmark::State& state, const KernelCase& kernel, Machine& machine,
              Prepared& prepared) {
  if (prepared.name != kernel.name) {
    prepared.body = nullptr;  // first give back the memory of the last case
    prepared.body = kernel.prepare(machine);
    prepared.name = kernel.name;
  }
  prepared.body();
  const ops::Ceiling before = machine.probe().sample();
  for (auto _ : state) {
    prepared.body();
  }
  const ops::Ceiling ceiling = ops::Ceiling::better_of(before, machine.probe().sample());
  state.counters[kProductCounter] = ceiling.flop_per_s;
  state.counters[kReadCounter] = ceiling.read_byte_per_s;
  state.counters["bytes_per_second"] =
      benchmark::Counter(kernel.bytes, benchmark::Counter::kIsIterationInvariantRate);
  state.counters["flops_per_second"] =
      benchmark::Counter(kernel.flops, benchmark::Counter::kIsIterationInvariantRate);
}

std::string ceiling_text(const char* label, const ops::Ceiling& ceiling, Machine& machine) {
  std::string text = fmt::format("  {:<8}{} {:.3f} TFLOP/s", label,
                                 machine.probe().loops().product.name, ceiling.flop_per_s / kTera);
  if (ceiling.int8_op_per_s) {
    text += fmt::format(", int8 {:.3f} TOP/s", *ceiling.int8_op_per_s / kTera);
  }
  return text + fmt::format(", read {:.1f} GB/s\n", ceiling.read_byte_per_s / kGiga);
}

json::object ceiling_json(const ops::Ceiling& ceiling) {
  json::object object{{"flop_per_s", ceiling.flop_per_s},
                      {"read_byte_per_s", ceiling.read_byte_per_s}};
  if (ceiling.int8_op_per_s) {
    object["int8_op_per_s"] = *ceiling.int8_op_per_s;
  }
  return object;
}

}  // namespace

double KernelResult::seconds() const {
  return middle_of(repetitions, [](const Repetition& one) { return one.seconds; });
}

double KernelResult::seconds_best() const {
  return std::ranges::min_element(repetitions, {}, &Repetition::seconds)->seconds;
}

double KernelResult::read_percent() const {
  return middle_of(repetitions, [&](const Repetition& one) {
    return 100.0 * kernel.bytes / one.seconds / one.ceiling.read_byte_per_s;
  });
}

double KernelResult::product_percent() const {
  return middle_of(repetitions, [&](const Repetition& one) {
    return 100.0 * kernel.flops / one.seconds / one.ceiling.flop_per_s;
  });
}

Collector::Collector(std::vector<KernelCase> cases, bool shows_progress)
    : cases_(std::move(cases)), shows_progress_(shows_progress) {}

bool Collector::ReportContext(const Context& /*context*/) {
  return true;
}

void Collector::ReportRuns(const std::vector<Run>& runs) {
  for (const Run& run : runs) {
    if (run.run_type != Run::RT_Iteration || run.error_occurred) {
      continue;
    }
    const auto calls = static_cast<double>(run.iterations);
    repetitions_[run.run_name.function_name].push_back(
        {.seconds = run.real_accumulated_time / calls,
         .ceiling = {.flop_per_s = run.counters.at(kProductCounter),
                     .int8_op_per_s = std::nullopt,
                     .read_byte_per_s = run.counters.at(kReadCounter)}});
  }
  if (shows_progress_) {
    fmt::print(stderr, "\r{} of {} cases\x1b[K", repetitions_.size(), cases_.size());
  }
}

std::vector<KernelResult> Collector::results() const {
  std::vector<KernelResult> results;
  for (const KernelCase& kernel : cases_) {
    const auto found = repetitions_.find(kernel.name);
    if (found != repetitions_.end()) {
      results.push_back({.kernel = kernel, .repetitions = found->second});
    }
  }
  return results;
}

void register_case(const KernelCase& kernel, Machine& machine) {
  static const auto kPrepared = std::make_shared<Prepared>();
  // Not UseRealTime(): it would end every name with "/real_time". The calling thread works, too, so
  // its CPU time decides well enough how often to repeat; the report takes the real time.
  benchmark::RegisterBenchmark(kernel.name.c_str(), [kernel, &machine](benchmark::State& state) {
    run_case(state, kernel, machine, *kPrepared);
  })->Unit(benchmark::kMicrosecond);
}

std::string to_text(const std::vector<KernelResult>& results, Machine& machine) {
  std::string text = fmt::format("{}, kernels {}, {} threads\n", machine.cpu().vendor_model,
                                 machine.table().name, machine.pool().size());
  text += "Ceilings, measured around every case\n";
  text += ceiling_text("best", machine.probe().best(), machine);
  text += ceiling_text("median", machine.probe().median(), machine);
  text += fmt::format("\n{:<56}{:>12}{:>12}{:>9}{:>9}{:>9}{:>12}\n", "kernel", "us", "best us",
                      "GB/s", "of read", "TFLOP/s", "of product");
  for (const KernelResult& result : results) {
    const double seconds = result.seconds();
    text += fmt::format("{:<56}{:>12.1f}{:>12.1f}{:>9.2f}{:>7.1f} %", result.kernel.name,
                        seconds * 1e6, result.seconds_best() * 1e6,
                        result.kernel.bytes / seconds / kGiga, result.read_percent());
    text += result.kernel.flops > 0.0
                ? fmt::format("{:>9.3f}{:>10.1f} %\n", result.kernel.flops / seconds / kTera,
                              result.product_percent())
                : std::string("\n");
  }
  return text;
}

std::string to_json(const std::vector<KernelResult>& results, Machine& machine) {
  json::array kernels;
  for (const KernelResult& result : results) {
    const double seconds = result.seconds();
    json::object object{{"name", result.kernel.name},
                        {"seconds", seconds},
                        {"seconds_best", result.seconds_best()},
                        {"repetitions", result.repetitions.size()},
                        {"byte_per_s", result.kernel.bytes / seconds},
                        {"percent_of_read", result.read_percent()}};
    if (result.kernel.flops > 0.0) {
      object["flop_per_s"] = result.kernel.flops / seconds;
      object["percent_of_product"] = result.product_percent();
    }
    kernels.push_back(std::move(object));
  }
  json::object ceiling = ceiling_json(machine.probe().best());
  ceiling["median"] = ceiling_json(machine.probe().median());
  ceiling["loop"] = machine.probe().loops().product.name;
  ceiling["read_buffer_bytes"] = machine.probe().read_bytes();
  return json::serialize(json::object{{"machine",
                                       {{"cpu", machine.cpu().vendor_model},
                                        {"kernels", machine.table().name},
                                        {"threads", machine.pool().size()}}},
                                      {"ceiling", std::move(ceiling)},
                                      {"kernels", std::move(kernels)}});
}

}  // namespace sluice::bench
