#include <fmt/format.h>

#include <atomic>
#include <chrono>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/quantiles.h"
#include "validate/filler_text.h"
#include "validate/server_checks.h"

namespace sluice::validate {
namespace {

constexpr std::int64_t kStreamTokens = 256;  // of one running answer; then the next begins
constexpr std::int64_t kSpareTokens = 64;
constexpr double kMillisecond = 1e3;

// A time between two parts of an answer.
struct Gap {
  Clock::TimePoint begin;
  Clock::TimePoint end;
};

// Answers to a short question, one after the other, until somebody has had enough: a reader.
class Stream {
 public:
  Stream(const AskedServer& server, Question question)
      : server_(server), question_(std::move(question)), client_(server.new_client()) {}

  // Errors: as AskedServer::ask.
  Result<void> read_once() {
    const Clock::TimePoint sent = server_.clock().now();
    const auto at = [&](double seconds) {
      return sent + std::chrono::duration_cast<Clock::TimePoint::duration>(
                        std::chrono::duration<double>(seconds));
    };
    const ChatAnswer answer = SLUICE_TRY(server_.ask(client_, question_));
    const std::vector<double>& chunks = answer.chunk_seconds;
    for (std::size_t i = 1; i < chunks.size(); ++i) {
      gaps_.push_back({.begin = at(chunks[i - 1]), .end = at(chunks[i])});
    }
    return {};
  }

  Result<void> read_until(const std::atomic<bool>& enough) {
    while (!enough.load()) {
      SLUICE_TRY(read_once());
    }
    return {};
  }

  // Of the gaps that touch the time from `begin` to `end`.
  Quantiles between(Clock::TimePoint begin, Clock::TimePoint end) const {
    std::vector<double> seconds;
    for (const Gap& gap : gaps_) {
      if (gap.end > begin && gap.begin < end) {
        seconds.push_back(seconds_between(gap.begin, gap.end));
      }
    }
    return quantiles_of(std::move(seconds));
  }

 private:
  const AskedServer& server_;
  Question question_;
  HttpClient client_;
  std::vector<Gap> gaps_;
};

// Empty without a value.
std::string milliseconds(const Quantiles& of, double seconds) {
  return of.count > 0 ? fmt::format("{:.1f} ms", seconds * kMillisecond) : "";
}

struct Measured {
  Quantiles alone;
  Quantiles beside;
  std::int64_t prompt_tokens = 0;
  double prompt_seconds = 0;
};

// One answer alone, then more of them while the server reads a prompt of about `length` tokens.
Result<Measured> measure(AskedServer& server, const ServerCheckOptions& options,
                         std::int64_t length) {
  Stream stream(server, {.messages = {message("user", "Hello")},
                         .salt = server.fresh_salt(),
                         .tokens_max = kStreamTokens,
                         .to_the_end = true});
  const Clock::TimePoint begin = server.clock().now();
  SLUICE_TRY(stream.read_once());
  const Clock::TimePoint alone_end = server.clock().now();
  FillerText filler(options.seed + static_cast<std::uint64_t>(length), options.bytes_per_token);
  const Question question{.messages = {message("user", filler.tokens(length - kSpareTokens))},
                          .salt = server.fresh_salt(),
                          .tokens_max = 1};
  std::atomic<bool> enough{false};
  Result<void> streamed;
  std::jthread reader([&] { streamed = stream.read_until(enough); });
  const Clock::TimePoint sent = server.clock().now();
  const Result<ChatAnswer> answer = server.ask(question);
  const Clock::TimePoint read = server.clock().now();
  enough.store(true);
  reader.join();
  SLUICE_TRY(streamed);
  return Measured{.alone = stream.between(begin, alone_end),
                  .beside = stream.between(sent, read),
                  .prompt_tokens = SLUICE_TRY(answer).prompt_tokens,
                  .prompt_seconds = seconds_between(sent, read)};
}

}  // namespace

Result<void> check_gaps(AskedServer& server, const ServerCheckOptions& options, Check& check) {
  check.table = Table{.columns = {"prompt tokens", "read at", "gaps", "alone p50", "alone p99",
                                  "beside p50", "beside p99", "p99 over alone"},
                      .rows = {}};
  for (const std::int64_t length : options.rate_tokens) {
    if (server.context() > 0 && length + kSpareTokens > server.context()) {
      break;
    }
    const Measured at = SLUICE_TRY(measure(server, options, length));
    if (at.alone.count == 0) {
      check.skip("answers come in one piece");
      return {};
    }
    const double rate = static_cast<double>(at.prompt_tokens) / at.prompt_seconds;
    check.table->rows.push_back(
        {std::to_string(at.prompt_tokens), fmt::format("{:.0f} tokens/s", rate),
         std::to_string(at.beside.count), milliseconds(at.alone, at.alone.p50),
         milliseconds(at.alone, at.alone.p99), milliseconds(at.beside, at.beside.p50),
         milliseconds(at.beside, at.beside.p99),
         at.beside.count > 0 ? fmt::format("{:.1f}", at.beside.p99 / at.alone.p99) : ""});
  }
  check.summary = fmt::format("measured beside {} prompts", check.table->rows.size());
  if (check.table->rows.empty()) {
    check.skip("the context of the server is too short");
  }
  return {};
}

}  // namespace sluice::validate
