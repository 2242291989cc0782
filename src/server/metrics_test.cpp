// The text of GET /metrics, and what the server counts for it. What the numbers mean is tested
// through a real engine in tests/http/test_metrics.py.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "server/metrics_text.h"
#include "server/reuse_header.h"
#include "server/server_metrics.h"
#include "server/test_server.h"

namespace sluice {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(MetricsText, SamplesOfOneMetricShareItsIntroduction) {
  MetricsText text;
  constexpr MetricName kDone{"a:done_total", "What was done."};
  text.counter(kDone, {{"how", "well"}}, 3);
  text.counter(kDone, {{"how", "badly"}, {"by", "us"}}, 0);
  text.gauge({"b", "Now."}, {}, 0.25);
  EXPECT_EQ(text.take(),
            "# HELP a:done_total What was done.\n# TYPE a:done_total counter\n"
            "a:done_total{how=\"well\"} 3\na:done_total{how=\"badly\",by=\"us\"} 0\n"
            "# HELP b Now.\n# TYPE b gauge\nb 0.25\n");
}

TEST(MetricsText, HistogramsAreCumulative) {
  static constexpr std::array kBounds{0.5, 1.0};
  Histogram histogram(kBounds);
  for (const double value : {0.25, 0.75, 0.75, 4.0}) {
    histogram.add(value);
  }
  MetricsText text;
  text.histogram({"t", "Times."}, {{"k", "v"}}, histogram);
  EXPECT_EQ(text.take(),
            "# HELP t Times.\n# TYPE t histogram\n"
            "t_bucket{k=\"v\",le=\"0.5\"} 1\nt_bucket{k=\"v\",le=\"1\"} 3\n"
            "t_bucket{k=\"v\",le=\"+Inf\"} 4\nt_sum{k=\"v\"} 5.75\nt_count{k=\"v\"} 4\n");
}

TEST(MetricsText, LabelsAreEscapedAndLargeCountsExact) {
  MetricsText text;
  text.gauge({"g", "G."}, {{"k", "a\"b\\c\nd"}}, 1234567890123.0);
  EXPECT_THAT(text.take(), HasSubstr("g{k=\"a\\\"b\\\\c\\nd\"} 1234567890123\n"));
}

TEST(ServerMetrics, LabelsAreOurOwnWords) {
  ServerMetrics metrics;
  metrics.http_request({.handler = "/live", .method = "GET", .status = 200, .seconds = 0.5});
  metrics.http_request({.handler = "/live", .method = "SECRET", .status = 405, .cut_off = true});
  const HttpRequestCounts http = metrics.http();
  EXPECT_EQ(http.requests.at({"/live", "GET", 200}), 1);
  EXPECT_EQ(http.requests.at({"/live", "other", 405}), 1);
  EXPECT_EQ(http.requests.size(), 2U);
  EXPECT_EQ(http.cut_off, 1);
  EXPECT_EQ(http.seconds.at("/live").count(), 2);
}

TEST(ReuseHeader, SaysWhatIsKnownOfEachPrompt) {
  std::string header;
  std::vector<TokenId> prompt(300, 5);
  prompt[0] = prompt[100] = prompt[150] = prompt[151] = 9;
  append_reuse(
      header,
      {.tokens = 64, .stored_tokens = 128, .limit = ReuseLimit::no_state, .diverged_at = 150},
      prompt, 9);
  append_reuse(header, {.limit = ReuseLimit::prompt_short}, std::vector<TokenId>(5), 9);
  append_reuse(header, {.limit = ReuseLimit::diverged, .diverged_at = 3}, prompt, std::nullopt);
  EXPECT_EQ(header,
            "reused=64; stored=128; prompt=300; reason=no_state; diverged_at=150; turn=2, "
            "reused=0; stored=0; prompt=5; reason=prompt_short, "
            "reused=0; stored=0; prompt=300; reason=diverged; diverged_at=3");
  for (int i = 0; i < 100; ++i) {
    append_reuse(header, {}, prompt, 9);
  }
  EXPECT_LE(header.size(), 1024U);
}

class Metrics : public ServerTest {
 protected:
  // The value of the line that begins with `name`, labels included.
  std::string value(const std::string& name) {
    const std::string text = get("/metrics").body;
    const std::size_t at = text.find("\n" + name + " ");
    if (at == std::string::npos) {
      return "none";
    }
    const std::size_t begin = at + name.size() + 2;
    return text.substr(begin, text.find('\n', begin) - begin);
  }
};

TEST_F(Metrics, ArePlainTextForEverybodyUnlessSetUpOtherwise) {
  config_.api_keys = {"key"};
  start();
  const TestReply reply = get("/metrics");
  EXPECT_EQ(reply.status, 200);
  EXPECT_EQ(reply.header("content-type"), "text/plain; version=0.0.4; charset=utf-8");
  shut_down();
  config_.public_info = false;
  start();
  EXPECT_EQ(get("/metrics").status, 401);
  EXPECT_EQ(get("/metrics", "Authorization: Bearer key\r\n").status, 200);
}

TEST_F(Metrics, CountWhatRepliesReport) {
  start();
  const std::string labels = "{model_name=\"tiny\",engine=\"0\"}";
  EXPECT_EQ(value("vllm:prompt_tokens_total" + labels), "0");
  engine_.set_script({.tokens = tokens("one two three")});
  ASSERT_EQ(post("/v1/chat/completions", chat(R"("n":2,"max_tokens":50)")).status, 200);
  const std::string said = std::to_string(2 * tokens("one two three").size());
  EXPECT_EQ(value("vllm:generation_tokens_total" + labels), said);
  EXPECT_EQ(value("vllm:request_params_n_sum" + labels), "2");
  EXPECT_EQ(value("vllm:request_params_max_tokens_sum" + labels), "50");
  EXPECT_EQ(value("vllm:request_success_total{model_name=\"tiny\",engine=\"0\","
                  "finished_reason=\"stop\"}"),
            "2");
}

TEST_F(Metrics, AnswersThatDidNotEndWellAreToldApart) {
  start();
  const auto outcome = [this](const std::string& reason) {
    return value("vllm:request_success_total{model_name=\"tiny\",engine=\"0\",finished_reason=\"" +
                 reason + "\"}");
  };
  engine_.set_script({.tokens = tokens("one two"), .endless = true});
  ASSERT_EQ(post("/v1/chat/completions", chat(R"("max_tokens":3)")).status, 200);
  EXPECT_EQ(outcome("length"), "1");
  ASSERT_EQ(post("/v1/chat/completions", chat(R"("stop":["two"],"stop_scope":"all")")).status, 200);
  EXPECT_EQ(outcome("stop"), "1");  // though the engine was told to cancel
  engine_.set_script({.error = Error{ErrorCode::internal, "broken", ""}});
  ASSERT_EQ(post("/v1/chat/completions", chat()).status, 500);
  EXPECT_EQ(outcome("error"), "1");
  engine_.set_script(
      {.tokens = tokens("one"), .endless = true, .pause = std::chrono::milliseconds(20)});
  ASSERT_EQ(post("/v1/chat/completions", chat(R"("timeout":0.05)")).status, 504);
  EXPECT_EQ(outcome("abort"), "1");
  {
    TestClient client(port());
    client.send_post("/v1/chat/completions", chat(R"("stream":true)"));
    EXPECT_TRUE(eventually([this] { return engine_.running() == 1; }));
  }
  EXPECT_TRUE(eventually([&] { return outcome("abort") == "2"; }));
  EXPECT_TRUE(eventually([this] { return value("server_client_disconnects_total") == "1"; }));
  EXPECT_EQ(outcome("length") + outcome("stop") + outcome("error"), "111");
}

TEST_F(Metrics, RequestsAreCountedByRouteAndStatus) {
  start();
  get("/v1/models/");
  get("/models");
  get("/no/such/path?secret");
  EXPECT_TRUE(eventually([this] {
    return value("http_requests_total{handler=\"/models\",method=\"GET\",status=\"200\"}") == "2" &&
           value("http_requests_total{handler=\"(unknown)\",method=\"GET\",status=\"404\"}") == "1";
  }));
  EXPECT_THAT(get("/metrics").body, Not(HasSubstr("secret")));
}

}  // namespace
}  // namespace sluice
