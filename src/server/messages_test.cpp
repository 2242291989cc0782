// The Anthropic dialect over the fake engine: what clients get, and what the engine gets.
#include "server/messages.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>

#include "server/test_server.h"

namespace sluice {
namespace {

namespace json = boost::json;
using std::chrono::milliseconds;

constexpr const char* kMessages = "/v1/messages";
constexpr const char* kCount = "/v1/messages/count_tokens";

std::string ask(const std::string& fields = {}) {
  return R"({"max_tokens":50,"messages":[{"role":"user","content":"Hi"}])" +
         (fields.empty() ? std::string() : "," + fields) + "}";
}

std::string ask_long(const std::string& fields) {
  return R"({"max_tokens":500,"messages":[{"role":"user","content":"Hi"}],)" + fields + "}";
}

// The content a stream adds up to, as a client builds it; every rule of the order is checked.
json::array accumulated(const TestReply& reply) {
  json::array blocks;
  bool open = false;
  std::vector<std::string> types;
  for (const std::string& text : reply.events()) {
    const json::value event = json::parse(text);
    const std::string type(event.at("type").as_string());
    types.push_back(type);
    EXPECT_NE(reply.body.find("event: " + type + "\ndata: " + text + "\n\n"), std::string::npos);
    if (type == "content_block_start") {
      EXPECT_FALSE(open);
      open = true;
      EXPECT_EQ(event.at("index").as_int64(), std::ssize(blocks));
      blocks.push_back(event.at("content_block"));
    } else if (type == "content_block_delta") {
      EXPECT_TRUE(open);
      json::object& block = blocks.back().as_object();
      for (const auto& [key, value] : event.at("delta").as_object()) {
        if (key == "partial_json") {  // "input" becomes the text of the object
          json::value& input = block.at("input");
          json::string& grown = input.is_string() ? input.get_string() : input.emplace_string();
          grown += value.as_string();
        } else if (key != "type") {
          json::string& grown = block.at(key).as_string();
          grown += value.as_string();
        }
      }
    } else if (type == "content_block_stop") {
      EXPECT_TRUE(open);
      open = false;
    }
  }
  EXPECT_FALSE(open);
  EXPECT_EQ(types.front(), "message_start");
  EXPECT_EQ(types.at(types.size() - 2), "message_delta");
  EXPECT_EQ(types.back(), "message_stop");
  return blocks;
}

json::value last_event(const TestReply& reply, const std::string& type) {
  json::value found;
  for (const std::string& text : reply.events()) {
    const json::value event = json::parse(text);
    if (event.at("type") == json::string(type)) {
      found = event;
    }
  }
  return found;
}

TEST_F(ServerTest, MessagesWithoutThinkingAreOneText) {
  engine_.set_script({.tokens = tokens("Hello é \U0001F600!")});
  start();
  const TestReply whole = post(kMessages, ask(R"("model":"claude-sonnet-x[1m]")"));
  ASSERT_EQ(whole.status, 200) << whole.body;
  const json::value reply = whole.json();
  EXPECT_EQ(reply.at("type"), "message");
  EXPECT_EQ(reply.at("role"), "assistant");
  EXPECT_EQ(reply.at("model"), "claude-sonnet-x[1m]");
  EXPECT_EQ(reply.at("id").as_string().rfind("msg_", 0), 0U);
  EXPECT_EQ(json::serialize(reply.at("content")),
            "[{\"type\":\"text\",\"text\":\"Hello é \U0001F600!\"}]");
  EXPECT_EQ(reply.at("stop_reason"), "end_turn");
  EXPECT_EQ(reply.at("stop_sequence"), nullptr);
  const TestReply stream = post(kMessages, ask("\"stream\":true"));
  EXPECT_EQ(accumulated(stream), reply.at("content").as_array());
  EXPECT_EQ(last_event(stream, "message_delta").at("usage"), reply.at("usage"));
  EXPECT_EQ(stream.body.find("[DONE]"), std::string::npos);
  const std::string prompt =
      "<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n<think>\n\n</think>\n\n";
  EXPECT_EQ(engine_.requests().at(0).token_ids, tokens(prompt));
  EXPECT_EQ(engine_.requests().at(0).stop.tokens_max, 50);
}

TEST_F(ServerTest, MessagesWithThinking) {
  engine_.set_script({.tokens = tokens("so\n</think>\n\nHello")});
  start();
  for (const char* thinking : {R"("thinking":{"type":"adaptive"})",
                               R"("thinking":{"type":"enabled","budget_tokens":1024})"}) {
    const json::value reply = post(kMessages, ask(thinking)).json();
    const json::value& block = reply.at("content").at(0);
    EXPECT_EQ(block.at("type"), "thinking");
    EXPECT_EQ(block.at("thinking"), "so");
    EXPECT_FALSE(block.at("signature").as_string().empty());
    EXPECT_EQ(reply.at("content").at(1).at("text"), "Hello");
    EXPECT_GT(reply.at("usage").at("output_tokens_details").at("thinking_tokens").as_int64(), 0);
  }
  const TestReply stream = post(kMessages, ask(R"("stream":true,"thinking":{"type":"adaptive"})"));
  const json::array blocks = accumulated(stream);
  ASSERT_EQ(blocks.size(), 2U);
  EXPECT_EQ(blocks[0].at("thinking"), "so");
  EXPECT_FALSE(blocks[0].at("signature").as_string().empty());
  EXPECT_EQ(blocks[1].at("text"), "Hello");
  const std::string omitted = R"("thinking":{"type":"adaptive","display":"omitted"})";
  for (const std::string& fields : {omitted, omitted + ",\"stream\":true"}) {
    const TestReply reply = post(kMessages, ask(fields));
    const json::array content =
        reply.body.starts_with('{') ? reply.json().at("content").as_array() : accumulated(reply);
    EXPECT_EQ(content.at(0).at("thinking"), "");
    EXPECT_FALSE(content.at(0).at("signature").as_string().empty());
    EXPECT_EQ(content.at(1).at("text"), "Hello");
  }
}

TEST_F(ServerTest, MessagesThinkingByDefaultIfSetUpSo) {
  config_.messages.thinking.enabled = true;
  engine_.set_script({.tokens = tokens("so\n</think>\n\nHello")});
  start();
  EXPECT_EQ(post(kMessages, ask()).json().at("content").at(0).at("type"), "thinking");
  EXPECT_EQ(post(kMessages, ask(R"("thinking":{"type":"disabled"})"))
                .json()
                .at("content")
                .at(0)
                .at("type"),
            "text");
}

TEST_F(ServerTest, MessagesUsageHasDisjointInputCounts) {
  engine_.set_script({.tokens = tokens("x"), .cached_tokens = 7});
  start();
  const std::int64_t prompt = post(kCount, ask()).json().at("input_tokens").as_int64();
  const TestReply stream = post(kMessages, ask("\"stream\":true"));
  for (const json::value& usage :
       {post(kMessages, ask()).json().at("usage"), last_event(stream, "message_delta").at("usage"),
        last_event(stream, "message_start").at("message").at("usage")}) {
    EXPECT_EQ(usage.at("cache_read_input_tokens"), 7);
    EXPECT_EQ(usage.at("input_tokens").as_int64() +
                  usage.at("cache_creation_input_tokens").as_int64() + 7,
              prompt);
  }
  EXPECT_EQ(last_event(stream, "message_start").at("message").at("usage").at("output_tokens"), 0);
  EXPECT_EQ(prompt, std::ssize(engine_.requests().at(0).token_ids));
}

TEST_F(ServerTest, MessagesStopReasons) {
  engine_.set_script({.tokens = tokens("one STOP two"), .endless = true});
  start();
  const json::value stopped = post(kMessages, ask(R"("stop_sequences":["TOP","no"])")).json();
  EXPECT_EQ(stopped.at("stop_reason"), "stop_sequence");
  EXPECT_EQ(stopped.at("stop_sequence"), "TOP");
  EXPECT_EQ(stopped.at("content").at(0).at("text"), "one S");
  const std::string hi = R"("messages":[{"role":"user","content":"Hi"}])";
  EXPECT_EQ(post(kMessages, "{\"max_tokens\":3," + hi + "}").json().at("stop_reason"),
            "max_tokens");
  for (const std::string& limit : {std::string(), std::string(R"("max_tokens":32000,)")}) {
    EXPECT_EQ(post(kMessages, "{" + limit + hi + "}").json().at("stop_reason"),
              "model_context_window_exceeded");
  }
  const json::value warm = post(kMessages, "{\"max_tokens\":0," + hi + "}").json();
  EXPECT_EQ(warm.at("stop_reason"), "max_tokens");
  EXPECT_TRUE(warm.at("content").as_array().empty());
}

TEST_F(ServerTest, MessagesErrorsHaveTheirOwnShape) {
  start();
  const TestReply bad = post(kMessages, R"({"max_tokens":1})", "X-Request-Id: r-1\r\n");
  EXPECT_EQ(bad.status, 400);
  EXPECT_EQ(bad.body, R"({"type":"error","error":{"type":"invalid_request_error","message":)"
                      R"("messages is required"},"request_id":"r-1"})");
  EXPECT_EQ(bad.header("x-should-retry"), "false");
  EXPECT_EQ(get(kMessages).json().at("error").at("type"), "invalid_request_error");  // 405
  EXPECT_EQ(get("/v1/messages/batches").json().at("error").at("type"), "not_found_error");
  EXPECT_EQ(post(kCount, "{").json().at("type"), "error");
  std::string words;
  for (int i = 0; i < 300; ++i) {
    words += "word ";
  }
  const TestReply full = post(
      kMessages, R"({"max_tokens":7,"messages":[{"role":"user","content":")" + words + "\"}]}");
  EXPECT_EQ(full.status, 400);
  EXPECT_THAT(std::string(full.json().at("error").at("message").as_string()),
              ::testing::MatchesRegex("prompt is too long: [0-9]+ tokens > 256 maximum"));
  engine_.refuse_with(Error{ErrorCode::resource_exhausted, "queue full", ""});
  const TestReply busy = post(kMessages, ask());
  EXPECT_EQ(busy.status, 429);
  EXPECT_EQ(busy.json().at("error").at("type"), "rate_limit_error");
  EXPECT_EQ(busy.header("retry-after"), "1");
  engine_.refuse_with(Error{ErrorCode::cancelled, "stopping", ""});
  const TestReply stopping = post(kMessages, ask());
  EXPECT_EQ(stopping.status, 529);
  EXPECT_EQ(stopping.json().at("error").at("type"), "overloaded_error");
}

TEST_F(ServerTest, MessagesAuthenticationErrors) {
  config_.api_keys = {"secret"};
  start();
  const TestReply wrong = post(kMessages, ask(), "x-api-key: no\r\n");
  EXPECT_EQ(wrong.status, 401);
  EXPECT_EQ(wrong.json().at("error").at("type"), "authentication_error");
  EXPECT_EQ(post("/messages", ask()).status, 401);
  EXPECT_EQ(post(kCount, ask(), "x-api-key: secret\r\n").status, 200);
}

TEST_F(ServerTest, MessagesFailuresInTheMiddleAreErrorEvents) {
  engine_.set_script({.tokens = tokens("a b"), .error = Error{ErrorCode::internal, "secret", ""}});
  start();
  const TestReply stream = post(kMessages, ask("\"stream\":true"));
  const json::value last = json::parse(stream.events().back());
  EXPECT_EQ(last.at("type"), "error");
  EXPECT_EQ(last.at("error").at("type"), "api_error");
  EXPECT_NE(stream.body.find("event: error\n"), std::string::npos);
  EXPECT_EQ(stream.body.find("message_stop"), std::string::npos);
  EXPECT_EQ(stream.body.find("secret"), std::string::npos);
}

TEST_F(ServerTest, MessagesPingsMayComeBeforeTheStart) {
  config_.ping_seconds = 1;
  engine_.set_script({.tokens = tokens("late"), .queue_pause = milliseconds(1500)});
  start();
  const TestReply stream = post(kMessages, ask("\"stream\":true"));
  EXPECT_TRUE(stream.body.starts_with("event: ping\ndata: {\"type\":\"ping\"}\n\n")) << stream.body;
  EXPECT_NE(stream.body.find("message_start"), std::string::npos);
  EXPECT_NE(stream.body.find("message_stop"), std::string::npos);
}

TEST_F(ServerTest, MessagesPrefillGoesOn) {
  engine_.set_script({.tokens = tokens(" upon")});
  start();
  const std::string messages =
      R"("messages":[{"role":"user","content":"q"},{"role":"assistant","content":"Once"}])";
  const json::value reply =
      post(kMessages, R"({"max_tokens":9,"thinking":{"type":"adaptive"},)" + messages + "}").json();
  EXPECT_EQ(reply.at("content").at(0).at("text"), " upon");
  EXPECT_EQ(
      engine_.requests().at(0).token_ids,
      tokens("<|im_start|>user\nq<|im_end|>\n<|im_start|>assistant\n<think>\n\n</think>\n\nOnce"));
}

TEST_F(ServerTest, MessagesIgnoredFieldsAreListed) {
  engine_.set_script({.tokens = tokens("x")});
  start();
  const std::string fields =
      R"("metadata":{"user_id":"u"},"service_tier":"auto","context_management":{"edits":[]},"n":3)";
  EXPECT_EQ(post(kMessages, ask(fields)).header("x-ignored-params"),
            "n,metadata,service_tier,context_management");
  EXPECT_EQ(post(kCount, ask(fields)).header("x-ignored-params"),
            "n,metadata,service_tier,context_management");
}

// Tools and how to call them take more than the usual context.
class MessagesToolTest : public ServerTest {
 protected:
  MessagesToolTest() : ServerTest(2048) {}
};

constexpr const char* kTools =
    R"("tools":[{"name":"read","description":"d","input_schema":{"type":"object","properties":{)"
    R"("path":{"type":"string"},"line":{"type":"integer"}}}}])";

TEST_F(MessagesToolTest, ToolCallsWholeAndStreamed) {
  engine_.set_script(
      {.tokens = tokens("Looking.\n\n<tool_call>\n<function=read>\n<parameter=path>\na.py\n"
                        "</parameter>\n<parameter=line>\n5\n</parameter>\n</function>\n"
                        "</tool_call>\n<tool_call>\n<function=read>\n</function>\n</tool_call>")});
  start();
  const json::value reply = post(kMessages, ask_long(kTools)).json();
  const json::array& content = reply.at("content").as_array();
  ASSERT_EQ(content.size(), 3U) << json::serialize(reply);
  EXPECT_EQ(content[0].at("text"), "Looking.");
  EXPECT_EQ(content[1].at("type"), "tool_use");
  EXPECT_EQ(content[1].at("name"), "read");
  EXPECT_EQ(content[1].at("id").as_string().rfind("toolu_", 0), 0U);
  EXPECT_EQ(json::serialize(content[1].at("input")), R"({"path":"a.py","line":5})");
  EXPECT_EQ(json::serialize(content[2].at("input")), "{}");
  EXPECT_EQ(reply.at("stop_reason"), "tool_use");
  const TestReply stream = post(kMessages, ask_long(kTools + std::string(",\"stream\":true")));
  const json::array blocks = accumulated(stream);
  ASSERT_EQ(blocks.size(), 3U);
  EXPECT_EQ(blocks[0].at("text"), "Looking.");
  EXPECT_EQ(blocks[1].at("input"), R"({"path": "a.py", "line": 5})");
  EXPECT_EQ(blocks[2].at("input"), "{}");
  EXPECT_EQ(last_event(stream, "message_delta").at("delta").at("stop_reason"), "tool_use");
}

TEST_F(MessagesToolTest, WithoutParallelCallsEndAfterTheFirst) {
  engine_.set_script(
      {.tokens = tokens("<tool_call>\n<function=read>\n</function>\n</tool_call>\n<tool_call>\n"
                        "<function=read>\n</function>\n</tool_call>")});
  start();
  const json::value reply =
      post(kMessages, ask(kTools + std::string(R"(,"tool_choice":{"type":"auto",)"
                                               R"("disable_parallel_tool_use":true})")))
          .json();
  EXPECT_EQ(reply.at("content").as_array().size(), 1U) << json::serialize(reply);
  EXPECT_EQ(reply.at("stop_reason"), "tool_use");
}

TEST_F(MessagesToolTest, CutCallsKeepWholeParameters) {
  engine_.set_script({.tokens = tokens("<tool_call>\n<function=read>\n<parameter=line>\n5\n"
                                       "</parameter>\n<parameter=path>\nabc"),
                      .endless = true});
  start();
  const std::int64_t length =
      std::ssize(tokens("<tool_call>\n<function=read>\n<parameter=line>\n5"
                        "\n</parameter>\n<parameter=path>\nabc"));
  const json::value reply =
      post(kMessages, "{\"max_tokens\":" + std::to_string(length) + "," + kTools +
                          R"(,"messages":[{"role":"user","content":"Hi"}]})")
          .json();
  EXPECT_EQ(json::serialize(reply.at("content").at(0).at("input")), R"({"line":5})");
  EXPECT_EQ(reply.at("stop_reason"), "max_tokens");
}

TEST_F(ServerTest, MessagesDeferredToolsAreShownWhereReferredTo) {
  start();
  const auto count = [&](const std::string& tools, const std::string& messages) {
    return post(kCount, R"({"tools":[{"name":"read","description":"d")" + tools +
                            R"(}],"messages":[{"role":"user","content":"Hi"})" + messages + "]}")
        .json()
        .at("input_tokens")
        .as_int64();
  };
  const std::string addition =
      R"(,{"role":"system","content":[{"type":"tool_addition","tool":{"type":"tool_reference",)"
      R"("name":"read"}}]})";
  const std::int64_t none = post(kCount, R"({"messages":[{"role":"user","content":"Hi"}]})")
                                .json()
                                .at("input_tokens")
                                .as_int64();
  const std::string deferred = ",\"defer_loading\":true";
  EXPECT_EQ(count(deferred, ""), none);
  EXPECT_GT(count(deferred, addition), none);
  EXPECT_GT(count("", ""), none);
}

TEST_F(ServerTest, MessagesForcedCallsNeedATool) {
  start();
  const TestReply reply =
      post(kMessages, ask(R"("tools":[{"type":"web_search_20250305","name":"web_search"}],)"
                          R"("tool_choice":{"type":"any"})"));
  EXPECT_EQ(reply.status, 400);
  EXPECT_NE(reply.body.find("no tool that can be called"), std::string::npos);
}

TEST_F(ServerTest, MarkedBlocksAreStablePositions) {
  engine_.set_script({.tokens = tokens("x")});
  start();
  post(kMessages, R"({"max_tokens":5,"system":[{"type":"text","text":"one two three",)"
                  R"("cache_control":{"type":"ephemeral"}},{"type":"text","text":"four"}],)"
                  R"("messages":[{"role":"user","content":"Hi"}]})");
  post("/v1/chat/completions",
       R"({"messages":[{"role":"system","content":[{"type":"text","text":"one two three",)"
       R"("cache_control":{"type":"ephemeral"}},{"type":"text","text":"\n\nfour"}]},)"
       R"({"role":"user","content":"Hi"}]})");
  const auto marked = std::ssize(tokens("<|im_start|>system\none two three"));
  ASSERT_EQ(engine_.requests().size(), 2U);
  for (const Request& request : engine_.requests()) {
    EXPECT_THAT(request.stable_positions, ::testing::Contains(marked));
    EXPECT_TRUE(std::ranges::is_sorted(request.stable_positions));
  }
}

TEST_F(ServerTest, CountTokensNeedsNoEngine) {
  engine_.refuse_with(Error{ErrorCode::resource_exhausted, "queue full", ""});
  start();
  const TestReply reply =
      post(kCount, R"({"system":"S","messages":[{"role":"user","content":"Hi"}]})");
  EXPECT_EQ(reply.status, 200) << reply.body;
  const std::string prompt =
      "<|im_start|>system\nS<|im_end|>\n<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n"
      "<think>\n\n</think>\n\n";
  EXPECT_EQ(reply.json().at("input_tokens").as_int64(), std::ssize(tokens(prompt)));
  EXPECT_TRUE(engine_.requests().empty());
}

}  // namespace
}  // namespace sluice
