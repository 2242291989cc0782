#include "validate/engine_checks.h"

#include <fmt/format.h>

#include <string>
#include <vector>

namespace sluice::validate {

Result<void> check_batch(Qwen3_5& model, const ExactnessOptions& options,
                         const std::function<void(std::int64_t compared)>& progress, Check& check) {
  const ExactnessReport report = SLUICE_TRY(check_exactness(model, options, progress));
  for (const std::string& difference : report.differences) {
    check.add_finding(difference);
  }
  check.finding_count = report.difference_count;
  check.counts = {{"compared", report.compared},           {"differences", report.difference_count},
                  {"cancelled", report.cancelled},         {"tokens", report.tokens},
                  {"prompt_tokens", report.prompt_tokens}, {"reused_tokens", report.reused_tokens},
                  {"preemptions", report.preemptions},     {"evictions", report.evictions},
                  {"running_max", report.running_max}};
  check.table = Table{.columns = {"of these answers", ""}, .rows = {}};
  check.table->rows = {{"tokens generated", std::to_string(report.tokens)},
                       {"cancelled", std::to_string(report.cancelled)},
                       {"at once, at most", std::to_string(report.running_max)},
                       {"preemptions", std::to_string(report.preemptions)},
                       {"prompt tokens", std::to_string(report.prompt_tokens)},
                       {"of these reused", std::to_string(report.reused_tokens)},
                       {"evictions", std::to_string(report.evictions)}};
  check.summary = fmt::format("{} answers compared with the same request alone, {} differ",
                              report.compared, report.difference_count);
  return {};
}

Result<void> check_reset(Qwen3_5& model, std::int64_t long_tokens, std::uint64_t seed,
                         Check& check) {
  const std::vector<std::string> differences =
      SLUICE_TRY(check_state_reset(model, long_tokens, seed));
  for (const std::string& difference : differences) {
    check.add_finding(difference);
  }
  check.counts = {{"long_tokens", long_tokens},
                  {"differences", static_cast<std::int64_t>(differences.size())}};
  check.summary = fmt::format("short and long ({} tokens) in turns, {} of 8 differ", long_tokens,
                              differences.size());
  return {};
}

}  // namespace sluice::validate
