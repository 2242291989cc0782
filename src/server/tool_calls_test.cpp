// Tool calls through the whole server over the fake engine.
#include <gtest/gtest.h>

#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>

#include "request/token_constraint.h"
#include "server/test_server.h"

namespace sluice {
namespace {

namespace json = boost::json;

constexpr const char* kChat = "/v1/chat/completions";
constexpr const char* kTools =
    R"("tools":[{"type":"function","function":{"name":"read","parameters":{"type":"object",)"
    R"("properties":{"path":{"type":"string"},"limit":{"type":"integer"}}}}}])";

class ToolCallTest : public ServerTest {
 protected:
  ToolCallTest() : ServerTest(2048) {}

  static std::string call(const std::string& path) {
    return "<tool_call>\n<function=read>\n<parameter=path>\n" + path +
           "\n</parameter>\n<parameter=limit>\n5\n</parameter>\n</function>\n</tool_call>";
  }
  static std::string fields(const std::string& more = {}) {
    return chat(kTools + (more.empty() ? std::string() : "," + more));
  }
};

struct StreamedCall {
  std::string id;
  std::string name;
  std::string arguments;
};

struct Streamed {
  std::string content;
  std::string finish;
  std::vector<StreamedCall> calls;
};

// Checks the form of every delta on the way.
Streamed streamed(const TestReply& reply) {
  Streamed total;
  for (const std::string& event : reply.events()) {
    if (event == "[DONE]") {
      continue;
    }
    const json::value chunk = json::parse(event);
    const json::value& choice = chunk.at("choices").at(0);
    const json::object& delta = choice.at("delta").as_object();
    if (const json::value* text = delta.if_contains("content")) {
      total.content += text->as_string();
    }
    if (const json::value* calls = delta.if_contains("tool_calls")) {
      EXPECT_EQ(delta.size(), 1U);
      const json::object& entry = calls->at(0).as_object();
      if (entry.contains("id")) {
        EXPECT_EQ(entry.at("type"), "function");
        EXPECT_EQ(entry.at("function").at("arguments"), "");
        total.calls.push_back({std::string(entry.at("id").as_string()),
                               std::string(entry.at("function").at("name").as_string()), ""});
      }
      EXPECT_EQ(entry.at("index"), std::ssize(total.calls) - 1);
      total.calls.back().arguments += entry.at("function").at("arguments").as_string();
    }
    if (choice.at("finish_reason").is_string()) {
      total.finish += choice.at("finish_reason").as_string();
    }
  }
  return total;
}

TEST_F(ToolCallTest, WholeAndStreamed) {
  engine_.set_script(
      {.tokens = tokens("so\n</think>\n\nLook.\n\n" + call("a\"é") + "\n" + call("b"))});
  start();
  const json::value whole = post(kChat, fields()).json();
  const json::value& choice = whole.at("choices").at(0);
  const json::object& message = choice.at("message").as_object();
  EXPECT_EQ(message.at("content"), "Look.");
  EXPECT_EQ(message.at("reasoning_content"), "so");
  EXPECT_EQ(choice.at("finish_reason"), "tool_calls");
  const json::array& calls = message.at("tool_calls").as_array();
  ASSERT_EQ(calls.size(), 2U);
  EXPECT_EQ(calls[0].at("function").at("name"), "read");
  EXPECT_EQ(calls[0].at("function").at("arguments"), R"({"path": "a\"é", "limit": 5})");
  EXPECT_TRUE(calls[0].at("id").as_string().starts_with("call_"));
  EXPECT_NE(calls[0].at("id"), calls[1].at("id"));

  const Streamed total = streamed(post(kChat, fields(R"("stream":true)")));
  EXPECT_EQ(total.content, "Look.");
  EXPECT_EQ(total.finish, "tool_calls");
  ASSERT_EQ(total.calls.size(), 2U);
  EXPECT_EQ(total.calls[0].name, "read");
  EXPECT_EQ(total.calls[0].arguments, R"({"path": "a\"é", "limit": 5})");
  EXPECT_EQ(total.calls[1].arguments, R"({"path": "b", "limit": 5})");
}

TEST_F(ToolCallTest, ContentIsNullBesideCallsAlone) {
  engine_.set_script({.tokens = tokens("\n</think>\n\n" + call("a"))});
  start();
  const json::value reply = post(kChat, fields()).json();
  EXPECT_TRUE(reply.at("choices").at(0).at("message").at("content").is_null());
}

TEST_F(ToolCallTest, ALimitWinsOverACall) {
  engine_.set_script(
      {.tokens = tokens("</think>" + call("long path") + call("b")), .endless = true});
  start();
  const auto tokens_max = std::ssize(tokens("</think>" + call("long path"))) + 12;
  const json::value reply =
      post(kChat, fields("\"max_tokens\":" + std::to_string(tokens_max))).json();
  const json::value& choice = reply.at("choices").at(0);
  EXPECT_EQ(choice.at("finish_reason"), "length");
  EXPECT_GE(choice.at("message").at("tool_calls").as_array().size(), 1U);
}

TEST_F(ToolCallTest, OneCallEndsTheAnswer) {
  engine_.set_script({.tokens = tokens("</think>" + call("a") + "\n"), .endless = true});
  start();
  const json::value reply = post(kChat, fields(R"("parallel_tool_calls":false)")).json();
  const json::value& choice = reply.at("choices").at(0);
  EXPECT_EQ(choice.at("message").at("tool_calls").as_array().size(), 1U);
  EXPECT_EQ(choice.at("finish_reason"), "tool_calls");
  EXPECT_TRUE(eventually([&] { return engine_.running() == 0; }));
}

TEST_F(ToolCallTest, WithToolChoiceNoneTheMarkupIsTextAndItsTokenIsNeverChosen) {
  engine_.set_script({.tokens = tokens("</think>" + call("a"))});
  start();
  const json::value none = post(kChat, fields(R"("tool_choice":"none")")).json();
  const json::value automatic = post(kChat, fields()).json();
  EXPECT_EQ(none.at("choices").at(0).at("message").at("content").as_string(), call("a"));
  EXPECT_EQ(none.at("choices").at(0).at("finish_reason"), "stop");
  EXPECT_EQ(none.at("usage").at("prompt_tokens"), automatic.at("usage").at("prompt_tokens"));
  const auto requests = engine_.requests();
  ASSERT_NE(requests.at(0).constraint, nullptr);
  auto constraint = requests.at(0).constraint->start().value();
  const auto opener = static_cast<std::size_t>(model().tokenizer.token_id("<tool_call>").value());
  std::vector<std::uint32_t> allowed(opener / 32 + 1, ~std::uint32_t{0});
  EXPECT_TRUE(constraint->narrow(allowed).value());
  EXPECT_EQ(allowed[opener / 32] >> (opener % 32) & 1U, 0U);
  EXPECT_FALSE(requests.at(1).constraint->start().value()->narrow(allowed).value());
}

TEST_F(ToolCallTest, ACallOfItsOwnFollowsAGrammarOnceItBegan) {
  engine_.set_script({.tokens = tokens("x")});
  start();
  ASSERT_EQ(post(kChat, fields()).status, 200);
  auto constraint = engine_.requests().at(0).constraint->start().value();
  const auto masked = [&] {
    std::vector<std::uint32_t> allowed(64, ~std::uint32_t{0});
    return constraint->narrow(allowed).value();
  };
  for (const TokenId id : tokens("so</think>\n\nLook: <tool_call>\n")) {
    EXPECT_FALSE(masked());
    ASSERT_TRUE(constraint->accept(id));
  }
  for (const TokenId id : tokens("<function")) {
    ASSERT_TRUE(constraint->accept(id));
  }
  EXPECT_TRUE(masked());
  EXPECT_FALSE(constraint->accept(tokens("</tool_call>")[0]));
}

TEST_F(ToolCallTest, CallsAreCountedByHowTheyEnded) {
  const auto value = [this](const std::string& name) {
    const std::string page = get("/metrics").body;
    const std::size_t at = page.find("\n" + name + " ") + name.size() + 2;
    return page.substr(at, page.find('\n', at) - at);
  };
  const auto outcomes = [&] {
    std::string all;
    for (const char* outcome : {"ok", "repaired", "literal", "truncated"}) {
      all += value(std::string("server_tool_calls_total{outcome=\"") + outcome + "\"}");
    }
    return all;
  };
  const std::string compiled = "server_schema_compile_seconds_count";
  const std::string plain = R"("enable_thinking":false)";
  engine_.set_script(
      {.tokens =
           tokens(call("a") + "\n<tool_call>\n<function=read>\n</tool_call>\n<tool_call> no")});
  start();
  EXPECT_EQ(outcomes() + value(compiled), "00000");
  ASSERT_EQ(post(kChat, fields(plain)).status, 200);
  EXPECT_EQ(outcomes() + value(compiled), "11101");
  engine_.set_script({.tokens = tokens(call("a")), .endless = true});
  const std::string limit = std::to_string(std::ssize(tokens(call("a"))) + 12);
  ASSERT_EQ(post(kChat, fields(plain + ",\"max_tokens\":" + limit)).status, 200);
  EXPECT_EQ(outcomes() + value(compiled), "21111") << "the grammar of the same tools is kept";
  ASSERT_EQ(post(kChat, chat(R"("guided_regex":"a+b")")).status, 200);
  EXPECT_EQ(value(compiled), "2");
}

TEST_F(ToolCallTest, AForcedCallIsAGrammar) {
  engine_.set_script({.tokens = tokens("</think>" + call("a"))});
  start();
  for (const char* choice :
       {R"("required")", R"({"type":"function","function":{"name":"read"}})",
        R"({"type":"allowed_tools","mode":"auto","tools":[{"name":"read"}]})"}) {
    const TestReply reply = post(kChat, fields("\"tool_choice\":" + std::string(choice)));
    EXPECT_EQ(reply.json().at("choices").at(0).at("finish_reason"), "tool_calls") << choice;
    EXPECT_NE(engine_.requests().back().constraint, nullptr);
  }
}

TEST_F(ToolCallTest, LogprobsLeaveMarkupOut) {
  engine_.set_script({.tokens = tokens("</think>\n\nHi\n\n" + call("a"))});
  start();
  const json::value reply = post(kChat, fields(R"("logprobs":true)")).json();
  std::string text;
  for (const json::value& token :
       reply.at("choices").at(0).at("logprobs").at("content").as_array()) {
    text += token.at("token").as_string();
  }
  EXPECT_TRUE(text == "Hi" || text == "\n\nHi" || text == "Hi\n\n") << text;
}

// The second turn of an agent: the call comes back, and its result.
std::string second_turn(const json::value& first_reply) {
  json::object call =
      first_reply.at("choices").at(0).at("message").at("tool_calls").at(0).as_object();
  const json::array messages{
      json::object{{"role", "user"}, {"content", "Hi"}},
      json::object{{"role", "assistant"},
                   {"content", nullptr},
                   {"reasoning_content", "so"},
                   {"tool_calls", json::array{call}}},
      json::object{{"role", "tool"}, {"tool_call_id", call.at("id")}, {"content", "found"}}};
  return R"({"messages":)" + json::serialize(messages) + "," + kTools + "}";
}

// Not as the template would write it: no newlines, no </function>, 5.0 for 5.
const std::string kOddCall =
    "<tool_call><function=read><parameter=path>a</parameter><parameter=limit>5.0</parameter>"
    "</tool_call>";

TEST_F(ToolCallTest, ACallComesBackAsTheTokensItWas) {
  config_.api_keys = {"key-a", "key-b"};
  const std::vector<TokenId> answer = tokens("so\n</think>\n\n" + kOddCall);
  engine_.set_script({.tokens = answer});
  start();
  const std::string mine = "Authorization: Bearer key-a\r\n";
  const json::value reply = post(kChat, fields(), mine).json();
  EXPECT_EQ(reply.at("choices").at(0).at("finish_reason"), "tool_calls");
  post(kChat, second_turn(reply), mine);
  post(kChat, second_turn(reply), "Authorization: Bearer key-b\r\n");
  const auto requests = engine_.requests();
  ASSERT_EQ(requests.size(), 3U);
  std::vector<TokenId> seen = requests[0].token_ids;
  seen.insert(seen.end(), answer.begin(), answer.end());
  const auto starts_with = [&](const std::vector<TokenId>& ids) {
    return ids.size() > seen.size() && std::equal(seen.begin(), seen.end(), ids.begin());
  };
  EXPECT_TRUE(starts_with(requests[1].token_ids));
  EXPECT_FALSE(starts_with(requests[2].token_ids));
}

TEST_F(ToolCallTest, AChangedCallIsWrittenAnew) {
  const std::vector<TokenId> answer = tokens("so\n</think>\n\n" + kOddCall);
  engine_.set_script({.tokens = answer});
  start();
  json::value reply = post(kChat, fields()).json();
  reply.at("choices").at(0).at("message").at("tool_calls").at(0).at("function").at("arguments") =
      R"({"path": "b", "limit": 5})";
  post(kChat, second_turn(reply));
  const auto prompt = model().tokenizer.decode(engine_.requests().at(1).token_ids, false);
  ASSERT_TRUE(prompt);
  EXPECT_TRUE(prompt->contains("<parameter=path>\nb\n</parameter>")) << *prompt;
}

TEST_F(ToolCallTest, DebugParseExistsOnlyWhenEnabled) {
  const std::string body =
      R"({"chunks":["Look.\n\n<tool_","call>\n<function=read>\n<parameter=path>\n","a\n)"
      R"(</parameter>\n</function>\n</tool_call>\n<function=read>\n<parameter=path>\nb"],)" +
      std::string(kTools) + R"(,"finish":"length"})";
  start();
  EXPECT_EQ(post("/debug/parse", body).status, 404);
  shut_down();
  config_.debug = true;
  start();
  const json::value reply = post("/debug/parse", body).json();
  EXPECT_EQ(reply.at("message").at("content"), "Look.");
  EXPECT_EQ(reply.at("message").at("tool_calls").at(0).at("function").at("arguments"),
            R"({"path": "a"})");
  EXPECT_EQ(reply.at("finish_reason"), "length");
  EXPECT_EQ(reply.at("call_outcomes"), json::parse(R"(["ok","truncated"])"));
  EXPECT_EQ(reply.at("deltas").at(0), json::parse(R"({"content":"Look."})"));
  EXPECT_EQ(reply.at("deltas").at(1).at("tool_calls").at(0).at("function").at("name"), "read");
  EXPECT_EQ(post("/debug/parse", "{}").json().at("error").at("param"), "text");
  EXPECT_EQ(post("/debug/parse", R"({"text":"","finish":"x"})").json().at("error").at("param"),
            "finish");
}

}  // namespace
}  // namespace sluice
