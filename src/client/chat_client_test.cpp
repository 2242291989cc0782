// Chat streams of several servers' habits, refusals, and streams that are none.
#include "client/chat_client.h"

#include <gtest/gtest.h>

#include <boost/json/serialize.hpp>
#include <chrono>
#include <string>
#include <vector>

#include "base/test_errors.h"
#include "client/test_http_server.h"

namespace sluice {
namespace {

using test::TestHttpServer;

// A second passes with every look.
class CountingClock final : public Clock {
 public:
  TimePoint now() const override { return TimePoint(std::chrono::seconds(++looks_)); }

 private:
  mutable int looks_ = 0;
};

std::string events(const std::vector<std::string>& data) {
  std::string bytes;
  for (const std::string& event : data) {
    bytes += "data: " + event + "\n\n";
  }
  return bytes;
}

std::string delta(const std::string& members, const std::string& rest = "") {
  return R"({"choices":[{"index":0,"delta":{)" + members + "}" + rest + "}]}";
}

Result<ChatAnswer> ask(const std::string& answer, bool hangs_up = false) {
  const TestHttpServer server({{{answer}, hangs_up}});
  HttpClient client(parse_server_url(server.url()).value(), {});
  return ask_chat(client, {{"messages", boost::json::array()}}, CountingClock());
}

Result<ChatAnswer> ask_stream(const std::vector<std::string>& data) {
  return ask(TestHttpServer::stream(events(data)));
}

TEST(ChatClientTest, PutsTheAnswerTogether) {
  const auto reply = ask_stream(
      {delta(R"("role":"assistant","content":"")"), delta(R"("reasoning_content":"th")"),
       delta(R"("reasoning":"ink")"),
       delta(R"("content":"Hel")", R"(,"logprobs":{"content":[{"token":"Hel"},{"token":"x"}]})"),
       delta(R"("content":"lo")", R"(,"logprobs":{"content":[{"token":"lo"}]})"),
       delta("", R"(,"finish_reason":"stop")"),
       R"({"choices":[],"usage":{"prompt_tokens":7,"completion_tokens":3,)"
       R"("prompt_tokens_details":{"cached_tokens":5}}})",
       "[DONE]"});
  ASSERT_TRUE(reply.has_value()) << reply.error().message;
  EXPECT_EQ(reply->status, 200);
  EXPECT_EQ(reply->text, "Hello");
  EXPECT_EQ(reply->reasoning, "think");
  EXPECT_EQ(reply->finish_reason, "stop");
  EXPECT_EQ(boost::json::serialize(reply->logprobs),
            R"([{"token":"Hel"},{"token":"x"},{"token":"lo"}])");
  EXPECT_EQ(reply->prompt_tokens, 7);
  EXPECT_EQ(reply->completion_tokens, 3);
  EXPECT_EQ(reply->cached_tokens, 5);
  EXPECT_EQ(reply->chunk_seconds, (std::vector<double>{1, 2, 3, 4}));
  EXPECT_EQ(reply->first_token_seconds, 1);
  EXPECT_EQ(reply->seconds, 5);
}

TEST(ChatClientTest, CallsComeInPieces) {
  const auto call = [](const std::string& part) { return delta(R"("tool_calls":[)" + part + "]"); };
  const auto reply = ask_stream(
      {call(R"({"index":0,"id":"a","type":"function","function":{"name":"f","arguments":""}})"),
       call(R"({"index":0,"function":{"arguments":"{\"x\":"}})"),
       call(R"({"index":0,"function":{"arguments":"1}"}})"),
       call(R"({"index":1,"id":"b","function":{"name":"g","arguments":"{}"}})"),
       delta("", R"(,"finish_reason":"tool_calls")")});
  ASSERT_TRUE(reply.has_value()) << reply.error().message;
  EXPECT_EQ(boost::json::serialize(reply->tool_calls),
            R"([{"id":"a","type":"function","function":{"name":"f","arguments":"{\"x\":1}"}},)"
            R"({"id":"b","type":"function","function":{"name":"g","arguments":"{}"}}])");
  EXPECT_EQ(reply->chunk_seconds.size(), 4U);
  EXPECT_EQ(reply->prompt_tokens, -1);
  EXPECT_EQ(reply->cached_tokens, -1);
}

TEST(ChatClientTest, AsksForAStreamWithUsage) {
  TestHttpServer server({{{TestHttpServer::reply("400 Bad Request", "{}")}}});
  HttpClient client(parse_server_url(server.url()).value(), {});
  EXPECT_EQ(ask_chat(client, {{"model", "m"}, {"stream", false}}, CountingClock()).value().status,
            400);
  const std::string request = server.requests().at(0);
  EXPECT_TRUE(request.starts_with("POST /v1/chat/completions HTTP/1.1\r\n"));
  EXPECT_TRUE(
      request.ends_with(R"({"model":"m","stream":true,"stream_options":{"include_usage":true}})"))
      << request;
}

TEST(ChatClientTest, RefusalsAreReplies) {
  for (const auto& [body, want] : std::vector<std::pair<std::string, std::string>>{
           {R"({"error":{"message":"too long","type":"x"}})", "too long"},
           {R"({"error":"plain"})", "plain"},
           {R"({"message":"top"})", "top"},
           {R"({"detail":"of FastAPI"})", "of FastAPI"},
           {"<html>busy</html>", "<html>busy</html>"},
           {"", ""}}) {
    const auto reply = ask(TestHttpServer::reply("503 Busy", body));
    ASSERT_TRUE(reply.has_value()) << body;
    EXPECT_EQ(reply->status, 503);
    EXPECT_EQ(reply->error, want);
  }
}

TEST(ChatClientTest, AnErrorInsideTheStream) {
  const auto reply = ask_stream({delta(R"("content":"Hel")"), R"({"error":{"message":"broke"}})"});
  ASSERT_TRUE(reply.has_value()) << reply.error().message;
  EXPECT_EQ(reply->status, 500);
  EXPECT_EQ(reply->error, "broke");
  EXPECT_EQ(reply->text, "Hel");
  EXPECT_EQ(ask_stream({R"({"error":{"message":"full","code":503}})"}).value().status, 503);
}

TEST(ChatClientTest, WhatIsNoChatStream) {
  for (const std::string event : {"garbage", "[1]", "{}", R"({"choices":1})", R"({"choices":[{}]})",
                                  R"({"choices":[{"delta":{"tool_calls":[{"index":9}]}}]})",
                                  R"({"choices":[{"delta":{"tool_calls":["x"]}}]})"}) {
    EXPECT_ERROR(ask_stream({event, delta("", R"(,"finish_reason":"stop")")}),
                 ErrorCode::corrupt_data, {"an event of the stream", event})
        << event;
  }
  EXPECT_ERROR(ask_stream({delta(R"("content":"a")"), "[DONE]"}), ErrorCode::io, {"finish_reason"});
  EXPECT_ERROR(ask_stream({}), ErrorCode::io, {"finish_reason"});
  std::string cut = TestHttpServer::stream(events({delta(R"("content":"a")")}));
  cut.resize(cut.size() - 5);
  EXPECT_ERROR(ask(cut, true), ErrorCode::io, {"hung up"});
}

}  // namespace
}  // namespace sluice
