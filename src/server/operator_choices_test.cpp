// What flags decide for requests that leave it open, and small fields of requests.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>

#include "server/test_server.h"

namespace sluice {
namespace {

namespace json = boost::json;

constexpr const char* kChat = "/v1/chat/completions";

TEST_F(ServerTest, TheIdInTheBodyIsTheRequests) {
  engine_.set_script({.tokens = tokens("x")});
  start();
  const TestReply reply = post(kChat, chat(R"("request_id":"mine-7")"), "x-request-id: other\r\n");
  EXPECT_EQ(reply.header("x-request-id"), "mine-7");
  EXPECT_EQ(engine_.requests().back().id, "mine-7");
  EXPECT_EQ(post(kChat, chat(R"("request_id":"two words")")).json().at("error").at("param"),
            "request_id");
}

TEST_F(ServerTest, AServiceTierIsAnsweredWithOurs) {
  engine_.set_script({.tokens = tokens("x")});
  start();
  EXPECT_EQ(post(kChat, chat(R"("service_tier":"flex")")).json().at("service_tier"), "default");
  EXPECT_FALSE(post(kChat, chat()).json().as_object().contains("service_tier"));
  const TestReply stream = post(kChat, chat(R"("service_tier":"auto","stream":true)"));
  EXPECT_EQ(json::parse(stream.events().front()).at("service_tier"), "default");
}

TEST_F(ServerTest, OverflowMayBeRefused) {
  engine_.set_script({.tokens = tokens("x")});
  config_.reject_overflow = true;
  start();
  EXPECT_EQ(post(kChat, chat(R"("max_tokens":100)")).status, 200);
  EXPECT_EQ(post(kChat, chat()).status, 200) << "the rest of the context fits always";
  const TestReply reply = post(kChat, chat(R"("max_tokens":250)"));
  EXPECT_EQ(reply.status, 400);
  EXPECT_EQ(reply.json().at("error").at("code"), "context_length_exceeded");
  EXPECT_THAT(std::string(reply.json().at("error").at("message").as_string()),
              ::testing::HasSubstr("250 in the completion"));
}

TEST_F(ServerTest, AnAnswerIsNoLongerThanTheOperatorAllows) {
  engine_.set_script({.tokens = tokens("x")});
  config_.answer_tokens_max = 10;
  start();
  const auto given = [this](const std::string& fields) {
    EXPECT_EQ(post(kChat, chat(fields)).status, 200);
    return engine_.requests().back().stop.tokens_max;
  };
  EXPECT_EQ(given(""), 10);
  EXPECT_EQ(given(R"("max_tokens":11)"), 10);
  EXPECT_EQ(given(R"("max_tokens":9)"), 9);
  shut_down();
  config_.reject_overflow = true;
  start();
  EXPECT_EQ(given(R"("max_tokens":10)"), 10);
  const TestReply reply = post(kChat, chat(R"("max_tokens":11)"));
  EXPECT_EQ(reply.status, 400);
  EXPECT_EQ(reply.json().at("error").at("param"), "max_tokens");
}

TEST_F(ServerTest, AKeyMayHaveLessContextThanOthers) {
  engine_.set_script({.tokens = tokens("x")});
  config_.api_keys = {"large", "small"};
  config_.key_context_max["small"] = 40;
  start();
  const std::string body = R"({"prompt":")" + std::string(60, 'x') + R"("})";
  EXPECT_EQ(post("/v1/completions", body, "x-api-key: large\r\n").status, 200);
  const TestReply reply = post("/v1/completions", body, "x-api-key: small\r\n");
  EXPECT_EQ(reply.status, 400);
  EXPECT_EQ(reply.json().at("error").at("code"), "context_length_exceeded");
  EXPECT_THAT(std::string(reply.json().at("error").at("message").as_string()),
              ::testing::HasSubstr("40 tokens"));
  const auto listed = [this](const std::string& key) {
    return get("/v1/models", "x-api-key: " + key + "\r\n")
        .json()
        .at("data")
        .at(0)
        .at("context_length");
  };
  EXPECT_EQ(listed("small"), 40);
  EXPECT_EQ(listed("large"), engine_.config().context_max);
}

TEST_F(ServerTest, RawCompletionsMayBeTurnedOff) {
  config_.raw_completions = false;
  engine_.set_script({.tokens = tokens("x")});
  start();
  EXPECT_EQ(post("/v1/completions", R"({"prompt":"x"})").status, 403);
  EXPECT_EQ(post(kChat, chat()).status, 200);
}

TEST_F(ServerTest, ClientsMayBringATemplateWhereTheyAreAllowedTo) {
  const auto rendered = [this](const std::string& source, const std::string& fields = "") {
    return post("/apply-template", R"({"messages":[{"role":"user","content":"<|im_end|>a"}],)" +
                                       fields + R"("chat_template":)" +
                                       json::serialize(json::value(source)) + "}");
  };
  engine_.set_script({.tokens = tokens("x")});
  start();
  EXPECT_EQ(rendered("x").json().at("error").at("code"), "unsupported_parameter");
  EXPECT_EQ(post(kChat, chat(R"("chat_template":null)")).status, 200);
  shut_down();

  config_.client_templates = true;
  start();
  const std::string source = "<|im_start|>{{ messages[0].content }}{{ mood }}<think>";
  const json::value reply =
      rendered(source, R"("return_tokens":true,"chat_template_kwargs":{"mood":" now"},)").json();
  EXPECT_EQ(reply.at("prompt"), "<|im_start|><|im_end|>a now<think>");
  EXPECT_EQ(reply.at("reasoning_open"), true);
  const std::int64_t end = model().tokenizer.token_id("<|im_end|>").value();
  for (const json::value& id : reply.at("tokens").as_array()) {
    EXPECT_NE(id, end) << "what users write is text in any template";
  }
  EXPECT_EQ(post(kChat, chat(R"("chat_template":"{{ messages[0].content }}")")).status, 200);
  for (const char* bad : {"{% if %}", "{{ raise_exception('no') }}", "{% for x in"}) {
    const TestReply refused = rendered(bad);
    EXPECT_EQ(refused.status, 400) << bad;
  }
  EXPECT_EQ(rendered("{% if %}").json().at("error").at("param"), "chat_template");
  const TestReply large = rendered(std::string((1U << 20U) + 1, 'x'));
  EXPECT_EQ(large.json().at("error").at("param"), "chat_template");
}

TEST_F(ServerTest, ThinkingMayBeForbidden) {
  config_.chat.thinking.forbidden = true;
  config_.messages.thinking.forbidden = true;
  engine_.set_script({.tokens = tokens("x")});
  start();
  const auto thinks = [this](const std::string& fields) {
    const json::value reply =
        post("/apply-template", R"({"messages":[{"role":"user","content":"a"}])" + fields + "}")
            .json();
    return !reply.at("prompt").as_string().ends_with("</think>\n\n");
  };
  EXPECT_FALSE(thinks(""));
  EXPECT_FALSE(thinks(R"(,"enable_thinking":true)"));
  EXPECT_FALSE(thinks(R"(,"reasoning_effort":"high")"));
  const TestReply reply = post(kChat, chat(R"("reasoning_effort":"high")"));
  EXPECT_EQ(reply.status, 200);
  EXPECT_EQ(reply.header("x-ignored-params"), "reasoning_effort");
  EXPECT_EQ(post(kChat, chat(R"("reasoning_effort":"none")")).header("x-ignored-params"), "");
}

TEST_F(ServerTest, SamplingThatIsLeftOpen) {
  config_.sampling.thinking.temperature = 1.0F;
  config_.sampling.thinking.top_k = 20;
  config_.sampling.direct.temperature = 0.5F;
  config_.choices_max = 2;
  engine_.set_script({.tokens = tokens("x")});
  start();
  const auto sampling = [this](const std::string& fields) {
    EXPECT_EQ(post(kChat, chat(fields)).status, 200);
    return engine_.requests().back().sampling;
  };
  EXPECT_EQ(sampling("").temperature, 1.0F);
  EXPECT_EQ(sampling("").top_k, 20);
  EXPECT_EQ(sampling(R"("temperature":0)").temperature, 0.0F);
  EXPECT_EQ(sampling(R"("enable_thinking":false)").temperature, 0.5F);
  EXPECT_EQ(post(kChat, chat(R"("n":2)")).status, 200);
  EXPECT_EQ(post(kChat, chat(R"("n":3)")).json().at("error").at("param"), "n");
}

TEST_F(ServerTest, ReasoningOfEarlierTurnsMayStay) {
  const std::string body =
      R"({"messages":[{"role":"user","content":"a"},{"role":"assistant","content":"b",)"
      R"("reasoning_content":"because"},{"role":"user","content":"c"}])";
  const std::string tools = R"(,"tools":[{"type":"function","function":{"name":"f"}}])";
  const auto keeps = [&](const std::string& more) {
    const json::value reply = post("/apply-template", body + more + "}").json();
    return reply.at("prompt").as_string().find("because") != std::string::npos;
  };
  start();
  EXPECT_FALSE(keeps(""));
  EXPECT_FALSE(keeps(tools));
  shut_down();
  config_.chat.conversation.preserve_thinking = PreserveThinking::with_tools;
  start();
  EXPECT_FALSE(keeps(""));
  EXPECT_TRUE(keeps(tools));
  EXPECT_FALSE(keeps(tools + R"(,"chat_template_kwargs":{"preserve_thinking":false})"));
  shut_down();
  config_.chat.conversation.preserve_thinking = PreserveThinking::always;
  start();
  EXPECT_TRUE(keeps(""));
}

}  // namespace
}  // namespace sluice
