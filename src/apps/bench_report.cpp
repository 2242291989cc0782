#include "apps/bench_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>
#include <cstddef>
#include <iterator>
#include <utility>

#include "apps/progress_bar.h"

namespace sluice::apps {
namespace {

namespace json = boost::json;

constexpr double kTera = 1e12;
constexpr double kGiga = 1e9;

const char* bound_of(const BenchRate& rate) {
  return rate.compute_bound ? "compute" : "memory";
}

json::object ceiling_json(const ops::Ceiling& ceiling) {
  json::object object{{"flop_per_s", ceiling.flop_per_s},
                      {"read_byte_per_s", ceiling.read_byte_per_s}};
  if (ceiling.int8_op_per_s) {
    object["int8_op_per_s"] = *ceiling.int8_op_per_s;
  }
  return object;
}

void add_rate(json::object& object, const BenchRate& rate) {
  object["tok_per_s"] = rate.tok_per_s;
  object["tok_per_s_best"] = rate.tok_per_s_best;
  object["runs"] = rate.runs;
  object["ceiling_tok_per_s"] = rate.ceiling_tok_per_s;
  object["percent_of_ceiling"] = rate.percent_of_ceiling();
  object["bound"] = bound_of(rate);
}

json::array prefill_json(const std::vector<PrefillFigure>& figures) {
  json::array array;
  for (const PrefillFigure& figure : figures) {
    json::object object{{"tokens", figure.tokens}};
    add_rate(object, figure.rate);
    array.push_back(std::move(object));
  }
  return array;
}

json::array decode_json(const std::vector<DecodeFigure>& figures) {
  json::array array;
  for (const DecodeFigure& figure : figures) {
    json::object object{{"context", figure.context}, {"batch", figure.batch}};
    add_rate(object, figure.rate);
    array.push_back(std::move(object));
  }
  return array;
}

std::string ceiling_text(const char* label, const ops::Ceiling& ceiling,
                         const BenchReport& report) {
  std::string text = fmt::format("  {:<8}{} {:.3f} TFLOP/s", label, report.product_loop,
                                 ceiling.flop_per_s / kTera);
  if (ceiling.int8_op_per_s) {
    text += fmt::format(", int8 {:.3f} TOP/s", *ceiling.int8_op_per_s / kTera);
  }
  return text + fmt::format(", read {:.1f} GB/s\n", ceiling.read_byte_per_s / kGiga);
}

std::string rate_columns(const BenchRate& rate) {
  return fmt::format("{:>12.2f}{:>12.2f}{:>7}{:>14.2f}{:>8.1f} %  {}\n", rate.tok_per_s,
                     rate.tok_per_s_best, rate.runs, rate.ceiling_tok_per_s,
                     rate.percent_of_ceiling(), bound_of(rate));
}

constexpr const char* kRateHeader = "{:>12}{:>12}{:>7}{:>14}{:>10}  {}\n";

std::string rate_header() {
  return fmt::format(fmt::runtime(kRateHeader), "tok/s", "best", "runs", "roofline", "of it",
                     "bound by");
}

}  // namespace

BenchRate bench_rate(const BenchRuns& runs, std::int64_t tokens, const StepCost& cost) {
  std::vector<double> seconds = runs.seconds;
  const auto half = seconds.begin() + static_cast<std::ptrdiff_t>(seconds.size() / 2);
  std::ranges::nth_element(seconds, half);
  const auto count = static_cast<double>(tokens);
  const double flop_per_s = runs.ceiling.flop_per_s;
  const MachineRates rates{.flop_per_s = flop_per_s,
                           .int8_op_per_s = runs.ceiling.int8_op_per_s.value_or(flop_per_s),
                           .byte_per_s = runs.ceiling.read_byte_per_s};
  return {.runs = seconds.size(),
          .tok_per_s = count / *half,
          .tok_per_s_best = count / *std::ranges::min_element(seconds),
          .ceiling_tok_per_s = count / roofline_seconds(cost, rates),
          .compute_bound = is_compute_bound(cost, rates)};
}

std::string to_text(const BenchReport& report) {
  std::string text =
      fmt::format("sluice {}, {}, kernels {}, {} thread{}\n{}, {} layers, {}\n", report.version,
                  report.cpu, report.kernels, report.threads, report.threads == 1 ? "" : "s",
                  report.model, report.layers, report.weights);
  text += fmt::format("\nCeilings, measured between the cases (memory: {})\n",
                      format_bytes(report.read_bytes));
  text += ceiling_text("best", report.ceiling_best, report);
  text += ceiling_text("median", report.ceiling_median, report);
  text += fmt::format(
      "\nMemory\n  weights {}, embedding {}, workspace {}, KV {} per token, state {} per sequence, "
      "at most {} resident\n",
      format_bytes(report.weight_bytes), format_bytes(report.embedding_bytes),
      format_bytes(report.workspace_bytes),
      format_bytes(static_cast<std::size_t>(report.kv_bytes_per_token)),
      format_bytes(report.state_bytes_per_sequence), format_bytes(report.peak_resident_bytes));
  if (!report.prefill.empty()) {
    text += fmt::format("\nPrefill\n{:>9}{:>7}{}", "tokens", "", rate_header());
    for (const PrefillFigure& figure : report.prefill) {
      text += fmt::format("{:>9}{:>7}{}", figure.tokens, "", rate_columns(figure.rate));
    }
  }
  if (!report.decode.empty()) {
    text += fmt::format("\nDecode, all sequences together\n{:>9}{:>7}{}", "context", "batch",
                        rate_header());
    for (const DecodeFigure& figure : report.decode) {
      text += fmt::format("{:>9}{:>7}{}", figure.context, figure.batch, rate_columns(figure.rate));
    }
  }
  for (const SkippedCase& skipped : report.skipped) {
    text += fmt::format("\nskipped: {}: {}", skipped.what, skipped.reason);
  }
  return text + (report.skipped.empty() ? "" : "\n");
}

std::string to_json(const BenchReport& report) {
  json::object ceiling = ceiling_json(report.ceiling_best);
  ceiling["median"] = ceiling_json(report.ceiling_median);
  ceiling["loop"] = report.product_loop;
  ceiling["read_buffer_bytes"] = report.read_bytes;
  json::array skipped;
  for (const SkippedCase& one : report.skipped) {
    skipped.push_back(json::object{{"case", one.what}, {"reason", one.reason}});
  }
  const json::object object{
      {"version", report.version},
      {"machine", {{"cpu", report.cpu}, {"kernels", report.kernels}, {"threads", report.threads}}},
      {"model", {{"name", report.model}, {"layers", report.layers}, {"weights", report.weights}}},
      {"ceiling", std::move(ceiling)},
      {"memory",
       {{"weight_bytes", report.weight_bytes},
        {"embedding_bytes", report.embedding_bytes},
        {"workspace_bytes", report.workspace_bytes},
        {"kv_bytes_per_token", report.kv_bytes_per_token},
        {"state_bytes_per_sequence", report.state_bytes_per_sequence},
        {"peak_resident_bytes", report.peak_resident_bytes}}},
      {"prefill", prefill_json(report.prefill)},
      {"decode", decode_json(report.decode)},
      {"skipped", std::move(skipped)}};
  return json::serialize(object);
}

}  // namespace sluice::apps
