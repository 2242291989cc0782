// Runs against a server of fixed answers, and what the report makes of records.
#include "load/load_runner.h"

#include <gtest/gtest.h>

#include <boost/json/parse.hpp>
#include <boost/json/value.hpp>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/test_errors.h"
#include "client/test_http_server.h"
#include "load/load_report.h"
#include "load/workload.h"

namespace sluice::load {
namespace {

using test::TestHttpServer;

std::string answer(const std::string& text) {
  return TestHttpServer::stream(
      R"(data: {"choices":[{"delta":{"content":")" + text + R"("}}]})" + "\n\n" +
      R"(data: {"choices":[{"delta":{"content":"."},"finish_reason":"stop"}]})" + "\n\n" +
      R"(data: {"choices":[],"usage":{"prompt_tokens":10,"completion_tokens":2,)"
      R"("prompt_tokens_details":{"cached_tokens":4}}})" +
      "\n\ndata: [DONE]\n\n");
}

LoadOptions options_of(const TestHttpServer& server) {
  LoadOptions options;
  options.url = parse_server_url(server.url()).value();
  options.model = "m";
  return options;
}

ConversationSource source_of(const WorkloadOptions& workload, std::optional<double> at = {}) {
  auto number = std::make_shared<std::uint64_t>(0);
  return [=]() -> std::optional<PlannedConversation> {
    return PlannedConversation{.conversation = make_conversation(workload, (*number)++), .at = at};
  };
}

LoadRun run(const LoadOptions& options, const ConversationSource& next,
            const std::atomic<bool>& stop = false) {
  return run_load(options, next, SteadyClock(), stop, [](std::int64_t, double) {});
}

TEST(LoadRunnerTest, TurnsFollowEachOtherUntilTheRequestsAreSent) {
  TestHttpServer server({{{answer("one")}}, {{answer("two")}}, {{answer("three")}}});
  LoadOptions options = options_of(server);
  options.requests_max = 3;
  const LoadRun load = run(options, source_of({.turns = 2, .system_words = 0}));
  ASSERT_EQ(load.records.size(), 3U);
  EXPECT_EQ(load.conversations, 2);
  for (const RequestRecord& record : load.records) {
    EXPECT_EQ(record.failure, "");
    EXPECT_EQ(record.prompt_tokens, 10);
    EXPECT_EQ(record.cached_tokens, 4);
    EXPECT_EQ(record.gap_seconds.size(), 1U);
    EXPECT_LE(*record.first_token_seconds, record.seconds);
    EXPECT_LE(record.end_seconds, load.seconds);
  }
  std::vector<std::size_t> sizes;
  for (const std::string& request : server.requests()) {
    const auto body = boost::json::parse(request.substr(request.find("\r\n\r\n") + 4));
    EXPECT_EQ(body.at("model"), "m");
    EXPECT_EQ(body.at("stream"), true);
    sizes.push_back(body.at("messages").as_array().size());
  }
  EXPECT_EQ(sizes, (std::vector<std::size_t>{1, 3, 1}));
  EXPECT_TRUE(server.requests()[1].contains("one."));
}

TEST(LoadRunnerTest, FailuresByTheirKind) {
  TestHttpServer server({{{TestHttpServer::reply("429 Busy", R"({"error":{"message":"full"}})")}},
                         {{answer("fine")}},
                         {{"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"}},
                         {{}, true},
                         {{TestHttpServer::reply("429 Busy", "again")}}});
  LoadOptions options = options_of(server);
  options.requests_max = 5;
  const LoadReport report =
      make_report(run(options, source_of({.kind = WorkloadKind::prompts})), {});
  EXPECT_EQ(report.answered, 1);
  EXPECT_EQ(report.failed, 4);
  ASSERT_EQ(report.failures.size(), 3U);
  EXPECT_EQ(report.failures[0].kind, "429");
  EXPECT_EQ(report.failures[0].count, 2);
  EXPECT_EQ(report.failures[0].example, "full");
  EXPECT_EQ(report.failures[1].kind, "corrupt_data");
  EXPECT_EQ(report.failures[2].kind, "io");
  EXPECT_EQ(report.conversations, 5);
}

TEST(LoadRunnerTest, TimesCountFromWhenARequestWasDue) {
  const TestHttpServer server({{{answer("a")}}, {{answer("b")}}});
  LoadOptions options = options_of(server);
  options.requests_max = 2;
  // Due a second before the run began: whoever is this late must say so.
  const LoadReport report = make_report(
      run(options, source_of({.kind = WorkloadKind::prompts}, -1.0)), {.first_token_seconds = 1.0});
  EXPECT_EQ(report.late_starts, 2);
  EXPECT_GE(report.late_seconds_max, 1.0);
  EXPECT_GE(report.first_token.p50, 1.0);
  EXPECT_GE(report.whole.p50, 1.0);
  EXPECT_EQ(report.good, 0);
}

TEST(LoadRunnerTest, NothingIsSentAfterItsEnd) {
  const TestHttpServer server({});
  LoadOptions options = options_of(server);
  options.seconds_max = 100;
  const LoadRun load = [&] {
    int left = 3;
    return run(options,
               [&left, next = source_of({}, 101.0)] { return left-- > 0 ? next() : std::nullopt; });
  }();
  EXPECT_TRUE(load.records.empty());
  EXPECT_EQ(load.conversations, 0);
  EXPECT_TRUE(run(options, source_of({}), true).records.empty());
}

TEST(LoadReportTest, GoodAnswersMeetEveryGoal) {
  RequestRecord record;
  record.seconds = 3;
  EXPECT_TRUE(is_good(record, {}));
  EXPECT_FALSE(is_good(record, {.first_token_seconds = 2}));  // no token came before its end
  record.first_token_seconds = 1;
  record.gap_seconds = {0.5, 1.5};
  EXPECT_TRUE(is_good(record, {.first_token_seconds = 1, .inter_token_seconds = 1}));
  EXPECT_FALSE(is_good(record, {.first_token_seconds = 1, .inter_token_seconds = 0.9}));
  EXPECT_FALSE(is_good(record, {.first_token_seconds = 0.9, .inter_token_seconds = 1}));
  record.completion_tokens = 5;  // four steps in the two chunks
  EXPECT_TRUE(is_good(record, {.first_token_seconds = {}, .inter_token_seconds = 0.5}));
}

TEST(LoadReportTest, SumsAndShares) {
  LoadRun load;
  load.seconds = 2;
  for (const std::int64_t cached : {30, -1}) {
    RequestRecord record;
    record.seconds = 1;
    record.prompt_tokens = 40;
    record.completion_tokens = 5;
    record.cached_tokens = cached;
    load.records.push_back(record);
  }
  load.records.emplace_back().failure = "500";
  const LoadReport report = make_report(load, {.inter_token_seconds = 1});
  EXPECT_EQ(report.prompt_tokens, 80);
  EXPECT_EQ(report.output_tokens, 10);
  EXPECT_EQ(report.usage_replies, 2);
  EXPECT_EQ(report.cache_replies, 1);
  EXPECT_EQ(report.hit_share(), 0.75);
  EXPECT_EQ(report.per_second(report.answered), 1.0);
  const auto json = boost::json::parse(to_json(report));
  EXPECT_EQ(json.at("prompt_tok_per_s"), 40.0);
  EXPECT_EQ(json.at("cache").at("hit_share"), 0.75);
  EXPECT_EQ(json.at("requests").at("failed"), 1);
  EXPECT_EQ(json.at("goodput").at("requests"), 2);
  EXPECT_TRUE(json.at("ttft_ms").is_null());
  EXPECT_EQ(json.at("end_to_end_ms").at("max"), 1000.0);
  const std::string text = to_text(report);
  for (const char* part : {"2 answered, 1 failed", "75.0 % of 40", "1 x 500", "Goodput"}) {
    EXPECT_TRUE(text.contains(part)) << text;
  }
}

}  // namespace
}  // namespace sluice::load
