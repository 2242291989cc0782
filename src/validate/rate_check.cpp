#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "validate/filler_text.h"
#include "validate/server_checks.h"

namespace sluice::validate {
namespace {

constexpr std::int64_t kAnswerTokens = 33;  // the first ends the prompt, 32 are decoded
constexpr std::size_t kChunksMin = 4;       // fewer make no rate
constexpr std::int64_t kSpareTokens = 64;
constexpr std::string_view kMemoryMetric = "server_memory_bytes{kind=\"";
constexpr std::string_view kLimitMetric = "server_memory_limit_bytes";

// The number after the last blank of a line; 0 when there is none.
double number_at_end(std::string_view line) {
  const std::string_view text = line.substr(line.find_last_of(' ') + 1);
  double value = 0.0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() ? value : 0.0;
}

// What the server holds and may hold, out of its metrics; no parts when it does not say.
StackedBar memory_of(std::string_view metrics) {
  StackedBar bar{.title = "The server: sequences and kept prefixes", .parts = {}};
  double used = 0.0;
  double limit = 0.0;
  while (!metrics.empty()) {
    const std::size_t end = std::min(metrics.find('\n'), metrics.size());
    const std::string_view line = metrics.substr(0, end);
    metrics.remove_prefix(std::min(end + 1, metrics.size()));
    if (line.starts_with(kMemoryMetric)) {
      const std::string_view kind = line.substr(kMemoryMetric.size());
      bar.parts.push_back({std::string(kind.substr(0, kind.find('"'))), number_at_end(line)});
      used += bar.parts.back().bytes;
    } else if (line.starts_with(kLimitMetric)) {
      limit = number_at_end(line);
    }
  }
  if (!bar.parts.empty() && limit > used) {
    bar.parts.push_back({"free", limit - used});
  }
  return bar;
}

// Tokens per second after the first; 0 when there were too few.
double decode_rate(const ChatAnswer& reply) {
  if (reply.chunk_seconds.size() < kChunksMin || reply.completion_tokens < 2) {
    return 0.0;
  }
  const double seconds = reply.chunk_seconds.back() - reply.chunk_seconds.front();
  return seconds > 0 ? static_cast<double>(reply.completion_tokens - 1) / seconds : 0.0;
}

}  // namespace

Result<void> check_rates(AskedServer& server, const ServerCheckOptions& options, Check& check,
                         std::vector<Plot>& plots, std::vector<StackedBar>& bars) {
  check.table = Table{.columns = {"prompt tokens", "prefill tokens/s", "decode tokens/s",
                                  "first token, cold", "first token, warm"},
                      .rows = {}};
  Series prefill{.name = "prefill", .points = {}};
  Series decode{.name = "decode", .points = {}};
  Series cold_first{.name = "cold", .points = {}};
  Series warm_first{.name = "warm", .points = {}};
  for (const std::int64_t length : options.rate_tokens) {
    if (server.context() > 0 && length + kAnswerTokens > server.context()) {
      break;
    }
    FillerText filler(options.seed + static_cast<std::uint64_t>(length), options.bytes_per_token);
    const Question question{.messages = {message("user", filler.tokens(length - kSpareTokens))},
                            .salt = server.fresh_salt(),
                            .tokens_max = kAnswerTokens,
                            .to_the_end = true};
    const ChatAnswer cold = SLUICE_TRY(server.ask(question));
    const ChatAnswer warm = SLUICE_TRY(server.ask(question));
    const auto tokens = static_cast<double>(cold.prompt_tokens);
    const double first = first_seconds(cold);
    const double rate = first > 0 ? tokens / first : 0.0;
    const double decoded = decode_rate(cold);
    prefill.points.push_back({tokens, rate});
    if (decoded > 0) {
      decode.points.push_back({tokens, decoded});
    }
    cold_first.points.push_back({tokens, first});
    warm_first.points.push_back({tokens, first_seconds(warm)});
    check.table->rows.push_back({std::to_string(cold.prompt_tokens), fmt::format("{:.0f}", rate),
                                 decoded > 0 ? fmt::format("{:.1f}", decoded) : "",
                                 seconds_text(first), seconds_text(first_seconds(warm))});
  }
  check.summary = fmt::format("measured at {} prompt lengths", check.table->rows.size());
  if (check.table->rows.empty()) {
    check.skip("the context of the server is too short");
  }
  plots.push_back(
      {.title = "Prefill rate by prompt length", .y_unit = "tokens/s", .series = {prefill}});
  plots.push_back({.title = "Decode rate by context", .y_unit = "tokens/s", .series = {decode}});
  plots.push_back({.title = "Time to the first token",
                   .y_unit = "seconds",
                   .series = {cold_first, warm_first}});
  if (StackedBar memory = memory_of(server.get("/metrics")); !memory.parts.empty()) {
    bars.push_back(std::move(memory));
  }
  return {};
}

}  // namespace sluice::validate
