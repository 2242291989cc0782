#include "load/load_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>
#include <boost/json/value.hpp>
#include <map>
#include <numeric>
#include <string_view>
#include <utility>

namespace sluice::load {
namespace {

namespace json = boost::json;

constexpr double kMillisecond = 1e3;

std::vector<Failures> failures_of(const LoadRun& run) {
  std::map<std::string, Failures> by_kind;
  for (const RequestRecord& record : run.records) {
    if (!record.failure.empty()) {
      Failures& failures = by_kind[record.failure];
      failures.kind = record.failure;
      if (failures.count == 0) {
        failures.example = record.message;
      }
      ++failures.count;
    }
  }
  std::vector<Failures> result;
  result.reserve(by_kind.size());
  for (auto& [kind, failures] : by_kind) {
    result.push_back(std::move(failures));
  }
  std::ranges::sort(result, {}, [](const Failures& failures) {
    return std::pair(-failures.count, std::string_view(failures.kind));
  });
  return result;
}

void add_tokens(const RequestRecord& record, LoadReport& report) {
  if (record.prompt_tokens >= 0 && record.completion_tokens >= 0) {
    ++report.usage_replies;
    report.prompt_tokens += record.prompt_tokens;
    report.output_tokens += record.completion_tokens;
  }
  if (record.prompt_tokens >= 0 && record.cached_tokens >= 0) {
    ++report.cache_replies;
    report.cache_prompt_tokens += record.prompt_tokens;
    report.cached_tokens += record.cached_tokens;
  }
}

std::string line_of(std::string_view name, const Quantiles& of) {
  return of.count == 0 ? fmt::format("  {:<18} {:>10}\n", name, "-")
                       : fmt::format("  {:<18} {:>10.1f} {:>10.1f} {:>10.1f} {:>10.1f}\n", name,
                                     of.p50 * kMillisecond, of.p95 * kMillisecond,
                                     of.p99 * kMillisecond, of.max * kMillisecond);
}

json::value quantiles_json(const Quantiles& of) {
  if (of.count == 0) {
    return nullptr;
  }
  return json::object{{"p50", of.p50 * kMillisecond},
                      {"p95", of.p95 * kMillisecond},
                      {"p99", of.p99 * kMillisecond},
                      {"max", of.max * kMillisecond},
                      {"count", of.count}};
}

json::value goal_json(const std::optional<double>& seconds) {
  return seconds ? json::value(*seconds * kMillisecond) : json::value(nullptr);
}

std::string goals_text(const LoadReport& report) {
  std::string limits;
  if (report.goals.first_token_seconds) {
    limits =
        fmt::format("first token within {:g} ms", *report.goals.first_token_seconds * kMillisecond);
  }
  if (report.goals.inter_token_seconds) {
    limits += fmt::format("{}{:g} ms between tokens", limits.empty() ? "" : ", ",
                          *report.goals.inter_token_seconds * kMillisecond);
  }
  return limits.empty()
             ? std::string()
             : fmt::format("Goodput    {:.3g} requests/s ({} of {} answered: {})\n",
                           report.per_second(report.good), report.good, report.answered, limits);
}

}  // namespace

bool is_good(const RequestRecord& record, const Goals& goals) {
  if (goals.first_token_seconds &&
      record.first_token_seconds.value_or(record.seconds) > *goals.first_token_seconds) {
    return false;
  }
  if (!goals.inter_token_seconds || record.gap_seconds.empty()) {
    return true;
  }
  // A chunk may hold several tokens: the server's count is better than that of the chunks.
  const double sum = std::accumulate(record.gap_seconds.begin(), record.gap_seconds.end(), 0.0);
  const double steps = std::max(static_cast<double>(record.gap_seconds.size()),
                                static_cast<double>(record.completion_tokens - 1));
  return sum / steps <= *goals.inter_token_seconds;
}

LoadReport make_report(const LoadRun& run, const Goals& goals) {
  LoadReport report;
  report.conversations = run.conversations;
  report.interrupted = run.interrupted;
  report.failures = failures_of(run);
  report.seconds = run.seconds;
  report.goals = goals;
  std::vector<double> first;
  std::vector<double> gaps;
  std::vector<double> whole;
  for (const RequestRecord& record : run.records) {
    report.late_starts += record.late_seconds > kLateSeconds ? 1 : 0;
    report.late_seconds_max = std::max(report.late_seconds_max, record.late_seconds);
    if (!record.failure.empty()) {
      ++report.failed;
      continue;
    }
    ++report.answered;
    report.good += is_good(record, goals) ? 1 : 0;
    add_tokens(record, report);
    whole.push_back(record.seconds);
    gaps.insert(gaps.end(), record.gap_seconds.begin(), record.gap_seconds.end());
    if (record.first_token_seconds) {
      first.push_back(*record.first_token_seconds);
    }
  }
  report.first_token = quantiles_of(std::move(first));
  report.inter_token = quantiles_of(std::move(gaps));
  report.whole = quantiles_of(std::move(whole));
  return report;
}

std::string to_text(const LoadReport& report) {
  std::string text = fmt::format(
      "Load       {}, {} loop, up to {} in flight; model {} at {}\n"
      "Requests   {} answered, {} failed{} in {:.2f} s, {} conversations\n",
      report.workload, report.loop, report.users, report.model, report.url, report.answered,
      report.failed,
      report.interrupted > 0 ? fmt::format(", {} interrupted", report.interrupted) : "",
      report.seconds, report.conversations);
  for (const Failures& failures : report.failures) {
    text += fmt::format("  {:>6} x {}: {}\n", failures.count, failures.kind, failures.example);
  }
  text += fmt::format("Rates      {:.3g} requests/s", report.per_second(report.answered));
  if (report.usage_replies > 0) {
    text += fmt::format(", {:.4g} prompt tokens/s, {:.4g} output tokens/s",
                        report.per_second(report.prompt_tokens),
                        report.per_second(report.output_tokens));
  }
  text += report.usage_replies < report.answered
              ? fmt::format(" ({} of {} replies said their tokens)\n", report.usage_replies,
                            report.answered)
              : "\n";
  text += fmt::format("Latency, ms {:>18} {:>10} {:>10} {:>10}\n", "p50", "p95", "p99", "max");
  text += line_of("first token", report.first_token);
  text += line_of("between tokens", report.inter_token);
  text += line_of("whole answer", report.whole);
  text += goals_text(report);
  text += report.cache_replies == 0
              ? "Cache      the server does not say\n"
              : fmt::format("Cache      {:.1f} % of {} prompt tokens ({} of {} replies said it)\n",
                            100.0 * report.hit_share(), report.cache_prompt_tokens,
                            report.cache_replies, report.answered);
  if (report.late_starts > 0) {
    text += fmt::format(
        "Late       {} requests were sent up to {:.0f} ms after they were due (the times above "
        "count from then)\n",
        report.late_starts, report.late_seconds_max * kMillisecond);
  }
  return text;
}

std::string to_json(const LoadReport& report) {
  json::array failures;
  for (const Failures& one : report.failures) {
    failures.push_back(
        json::object{{"kind", one.kind}, {"count", one.count}, {"example", one.example}});
  }
  const bool has_goals = report.goals.first_token_seconds || report.goals.inter_token_seconds;
  const json::object goodput{{"requests", report.good},
                             {"requests_per_s", report.per_second(report.good)},
                             {"slo_ttft_ms", goal_json(report.goals.first_token_seconds)},
                             {"slo_itl_ms", goal_json(report.goals.inter_token_seconds)}};
  const json::object object{
      {"url", report.url},
      {"model", report.model},
      {"workload", report.workload},
      {"loop", report.loop},
      {"concurrency", report.users},
      {"requests", json::object{{"answered", report.answered},
                                {"failed", report.failed},
                                {"interrupted", report.interrupted},
                                {"conversations", report.conversations}}},
      {"failures", std::move(failures)},
      {"seconds", report.seconds},
      {"requests_per_s", report.per_second(report.answered)},
      {"prompt_tok_per_s", report.per_second(report.prompt_tokens)},
      {"output_tok_per_s", report.per_second(report.output_tokens)},
      {"tokens", json::object{{"prompt", report.prompt_tokens},
                              {"output", report.output_tokens},
                              {"replies", report.usage_replies}}},
      {"ttft_ms", quantiles_json(report.first_token)},
      {"inter_token_ms", quantiles_json(report.inter_token)},
      {"end_to_end_ms", quantiles_json(report.whole)},
      {"goodput", has_goals ? json::value(goodput) : json::value(nullptr)},
      {"cache", report.cache_replies == 0
                    ? json::value(nullptr)
                    : json::value{{"hit_share", report.hit_share()},
                                  {"cached_tokens", report.cached_tokens},
                                  {"prompt_tokens", report.cache_prompt_tokens},
                                  {"replies", report.cache_replies}}},
      {"late_starts", json::object{{"count", report.late_starts},
                                   {"max_ms", report.late_seconds_max * kMillisecond}}}};
  return json::serialize(object);
}

}  // namespace sluice::load
