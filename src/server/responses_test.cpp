// The Responses API over the fake engine.
#include "server/responses.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/json/serialize.hpp>

#include "server/test_server.h"

namespace sluice {
namespace {

namespace json = boost::json;

constexpr const char* kResponses = "/v1/responses";

class ResponsesTest : public ServerTest {
 protected:
  ResponsesTest() : ServerTest(2048) {}

  void start_saying(const std::string& answer) {
    engine_.set_script({.tokens = tokens(answer)});
    start();
  }
  json::value created(const std::string& body, const std::string& headers = {}) {
    const TestReply reply = post(kResponses, body, headers);
    EXPECT_EQ(reply.status, 200) << reply.body;
    return reply.json();
  }
  TestReply send(const std::string& method, const std::string& path,
                 const std::string& headers = {}) {
    TestClient client(port());
    client.send_get(path, headers, method);
    return client.reply();
  }
  std::string last_prompt() const {
    const auto ids = engine_.requests().back().token_ids;
    return model().tokenizer.decode(ids, false).value();
  }
  static std::string id_of(const json::value& response) {
    return std::string(response.at("id").as_string());
  }
};

TEST_F(ResponsesTest, WholeAndStreamed) {
  start_saying("so\n</think>\n\nHello \U0001F600!");
  const json::value whole = created(R"({"input":"Hi","model":"gpt-x","temperature":0.7})");
  EXPECT_EQ(whole.at("status"), "completed");
  EXPECT_EQ(whole.at("model"), "gpt-x");
  EXPECT_EQ(whole.at("temperature"), 0.7);
  EXPECT_EQ(whole.at("output").at(0).at("content").at(0).at("text"), "so");
  EXPECT_EQ(whole.at("output").at(1).at("content").at(0).at("text"), "Hello \U0001F600!");
  EXPECT_EQ(last_prompt(), "<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n<think>\n");

  const TestReply stream = post(kResponses, R"({"input":"Hi","stream":true})");
  EXPECT_EQ(stream.header("content-type"), "text/event-stream; charset=utf-8");
  const std::vector<std::string> events = stream.events();
  for (std::size_t i = 0; i < events.size(); ++i) {
    const json::value event = json::parse(events[i]);
    EXPECT_EQ(event.at("sequence_number"), i);
    EXPECT_NE(stream.body.find("event: " + std::string(event.at("type").as_string()) + "\ndata: "),
              std::string::npos);
  }
  const json::value last = json::parse(events.back());
  EXPECT_EQ(last.at("type"), "response.completed");
  EXPECT_EQ(last.at("response").at("usage"), whole.at("usage"));
}

TEST_F(ResponsesTest, CutAndFailed) {
  engine_.set_script({.tokens = tokens("a b c"), .endless = true});
  start();
  const json::value cut = created(R"({"input":"Hi","max_output_tokens":3})");
  EXPECT_EQ(cut.at("status"), "incomplete");
  EXPECT_EQ(cut.at("incomplete_details").at("reason"), "max_output_tokens");
  EXPECT_EQ(cut.at("usage").at("output_tokens"), 3);

  engine_.set_script(
      {.tokens = tokens("</think>\n\nHe"), .error = Error{ErrorCode::internal, "x", ""}});
  const TestReply failed = post(kResponses, R"({"input":"Hi","stream":true})");
  const json::value last = json::parse(failed.events().back());
  EXPECT_EQ(last.at("type"), "response.failed");
  EXPECT_EQ(last.at("response").at("error").at("code"), "server_error");
  EXPECT_EQ(post(kResponses, R"({"input":"Hi"})").status, 500);
}

TEST_F(ResponsesTest, ConversationsGoOnWithoutTheirInstructions) {
  start_saying("t\n</think>\n\nOne.");
  const json::value first = created(R"({"input":"Hi","instructions":"Be brief."})");
  EXPECT_THAT(last_prompt(), ::testing::HasSubstr("Be brief."));
  const json::value second =
      created(R"({"input":"More","previous_response_id":")" + id_of(first) + "\"}");
  EXPECT_EQ(second.at("previous_response_id"), first.at("id"));
  const json::value third =
      created(R"({"input":"Even more","instructions":"New.","previous_response_id":")" +
              id_of(second) + "\"}");
  const std::string prompt = last_prompt();
  EXPECT_THAT(prompt, ::testing::Not(::testing::HasSubstr("Be brief.")));
  EXPECT_THAT(prompt, ::testing::StartsWith("<|im_start|>system\nNew.<|im_end|>\n"));
  for (const char* text : {"Hi", "One.", "More", "Even more"}) {
    EXPECT_THAT(prompt, ::testing::HasSubstr(text));
  }
  const TestReply unknown = post(kResponses, R"({"input":"x","previous_response_id":"resp_0"})");
  EXPECT_EQ(unknown.status, 400);
  EXPECT_EQ(unknown.json().at("error").at("code"), "previous_response_not_found");
}

TEST_F(ResponsesTest, StoredResponsesCanBeReadAndDeleted) {
  start_saying("</think>\n\nHello");
  const json::value made = created(R"({"input":"Hi","metadata":{"a":"b"}})");
  const std::string path = std::string(kResponses) + "/" + id_of(made);
  EXPECT_EQ(get(path).json(), made);
  EXPECT_EQ(post(path + "/cancel", "").json(), made);
  const json::value items = get(path + "/input_items").json();
  EXPECT_EQ(items.at("data").as_array().size(), 1U);
  EXPECT_EQ(items.at("data").at(0).at("content").at(0).at("text"), "Hi");
  EXPECT_EQ(items.at("first_id"), items.at("data").at(0).at("id"));
  EXPECT_FALSE(items.at("has_more").as_bool());

  const std::string item_id(made.at("output").at(0).at("id").as_string());
  created(R"({"input":[{"role":"user","content":"Hi"},{"type":"item_reference","id":")" + item_id +
          R"("},{"role":"user","content":"Go on"}]})");
  EXPECT_THAT(last_prompt(), ::testing::HasSubstr("Hello<|im_end|>"));

  EXPECT_EQ(send("DELETE", path).json().at("deleted"), true);
  for (const TestReply& gone :
       {get(path), get(path + "/input_items"), send("DELETE", path), post(path + "/cancel", "")}) {
    EXPECT_EQ(gone.status, 404);
    EXPECT_EQ(gone.json().at("error").at("code"), "not_found");
  }
  EXPECT_EQ(get(path + "/nonsense").status, 404);
}

TEST_F(ResponsesTest, ARunningResponseCanBeCancelled) {
  config_.api_keys = {"a", "b"};
  engine_.set_script(
      {.tokens = tokens("</think>\n\nx"), .endless = true, .pause = std::chrono::milliseconds(5)});
  start();
  TestClient running(port());
  running.send_post(kResponses, R"({"input":"Hi","stream":true})", "x-api-key: a\r\n");
  ASSERT_TRUE(running.wait_for("response.output_text.delta"));
  const std::string seen = running.buffer();
  const std::size_t at = seen.find("resp_");
  const std::string path = std::string(kResponses) + "/" + seen.substr(at, seen.find('"', at) - at);
  const json::value shown = get(path, "x-api-key: a\r\n").json();
  EXPECT_EQ(shown.at("status"), "in_progress");
  EXPECT_EQ(shown.at("output"), json::array());
  EXPECT_NE(seen.find(json::serialize(shown)), std::string::npos) << "as the stream began";
  EXPECT_EQ(get(path, "x-api-key: b\r\n").status, 404) << "not theirs";
  EXPECT_EQ(post(path + "/cancel", "", "x-api-key: b\r\n").status, 404) << "not theirs";
  const TestReply cancelled = post(path + "/cancel", "", "x-api-key: a\r\n");
  EXPECT_EQ(cancelled.status, 200);
  EXPECT_EQ(cancelled.json().at("status"), "cancelled");
  const TestReply stream = running.reply();
  EXPECT_TRUE(stream.complete);
  const json::value last = json::parse(stream.events().back());
  EXPECT_EQ(last.at("type"), "response.incomplete");
  EXPECT_EQ(last.at("response"), cancelled.json());
  EXPECT_EQ(get(path, "x-api-key: a\r\n").json(), cancelled.json());
  EXPECT_TRUE(eventually([&] { return engine_.running() == 0; }));
  EXPECT_EQ(post(path + "/cancel", "", "x-api-key: a\r\n").json(), cancelled.json()) << "again";
}

TEST_F(ResponsesTest, CancellingWhatItsClientLeftIsNotFound) {
  engine_.set_script({.tokens = tokens("x"), .first_pause = std::chrono::milliseconds(300)});
  start();
  auto running = std::make_unique<TestClient>(port());
  running->send_post(kResponses, R"({"input":"Hi","stream":true})");
  ASSERT_TRUE(running->wait_for("response.in_progress"));
  const std::string seen = running->buffer();
  const std::size_t at = seen.find("resp_");
  running.reset();
  ASSERT_TRUE(eventually([&] { return engine_.running() == 0; }));
  EXPECT_EQ(
      post(std::string(kResponses) + "/" + seen.substr(at, seen.find('"', at) - at) + "/cancel", "")
          .status,
      404);
}

TEST_F(ResponsesTest, WhatIsNotStoredIsNotShownWhileItRuns) {
  engine_.set_script(
      {.tokens = tokens("x"), .endless = true, .pause = std::chrono::milliseconds(5)});
  start();
  TestClient running(port());
  running.send_post(kResponses, R"({"input":"Hi","stream":true,"store":false})");
  ASSERT_TRUE(running.wait_for("response.in_progress"));
  const std::string seen = running.buffer();
  const std::size_t at = seen.find("resp_");
  const std::string path = std::string(kResponses) + "/" + seen.substr(at, seen.find('"', at) - at);
  EXPECT_EQ(get(path).status, 404);
  EXPECT_EQ(post(path + "/cancel", "").status, 200);
}

TEST_F(ResponsesTest, NothingIsKeptUnlessWanted) {
  start_saying("</think>\n\nHello");
  const json::value made = created(R"({"input":"Hi","store":false})");
  EXPECT_EQ(made.at("store"), false);
  EXPECT_EQ(get(std::string(kResponses) + "/" + id_of(made)).status, 404);
}

TEST_F(ResponsesTest, TheStoreCanBeOff) {
  config_.responses_store = false;
  start_saying("</think>\n\nHello");
  const json::value made = created(R"({"input":"Hi","store":true})");
  EXPECT_EQ(made.at("store"), false);
  EXPECT_EQ(get(std::string(kResponses) + "/" + id_of(made)).status, 404);
}

TEST_F(ResponsesTest, ResponsesBelongToTheirKey) {
  config_.api_keys = {"one", "two"};
  start_saying("</think>\n\nHello");
  const std::string one = "Authorization: Bearer one\r\n";
  const std::string two = "x-api-key: two\r\n";
  const json::value made = created(R"({"input":"Hi"})", one);
  const std::string path = std::string(kResponses) + "/" + id_of(made);
  EXPECT_EQ(get(path, one).status, 200);
  EXPECT_EQ(get(path, two).status, 404);
  EXPECT_EQ(send("DELETE", path, two).status, 404);
  EXPECT_EQ(get(path).status, 401);
  const std::string next = R"({"input":"x","previous_response_id":")" + id_of(made) + "\"}";
  EXPECT_EQ(post(kResponses, next, two).status, 400);
  EXPECT_EQ(post(kResponses, next, one).status, 200);
}

TEST_F(ResponsesTest, StatelessReplayOfSealedReasoning) {
  start_saying("deep thought\n</think>\n\nHello");
  const json::value made =
      created(R"({"input":"Hi","store":false,"include":["reasoning.encrypted_content"]})");
  json::object reasoning = made.at("output").at(0).as_object();
  ASSERT_TRUE(reasoning.at("encrypted_content").is_string());
  reasoning["content"] = nullptr;
  json::array input{json::object{{"role", "user"}, {"content", "Hi"}}, reasoning,
                    made.at("output").at(1)};
  created(json::serialize(json::object{{"input", input}, {"store", false}}));
  EXPECT_THAT(last_prompt(), ::testing::HasSubstr("<think>\ndeep thought\n</think>\n\nHello"));
}

// A call of `name` with one parameter, as the model writes it.
std::string markup(const std::string& name, const std::string& key, const std::string& value) {
  return "<tool_call>\n<function=" + name + ">\n<parameter=" + key + ">\n" + value +
         "\n</parameter>\n</function>\n</tool_call>";
}

constexpr const char* kTools = R"("tools":[{"type":"web_search"},
  {"type":"function","name":"ls","parameters":{"type":"object","properties":{"path":{"type":"string"}}}},
  {"type":"custom","name":"patch","description":"edits"},
  {"type":"namespace","name":"git","tools":[
    {"type":"function","name":"log","parameters":{"type":"object","properties":{"n":{"type":"integer"}}}}]}])";

TEST_F(ResponsesTest, ToolCallsWholeAndStreamed) {
  start_saying("t\n</think>\n\nLook:\n" + markup("ls", "path", "a \"b\"") + "\n" +
               markup("git__log", "n", "3") + "\n" + markup("patch", "input", "*** Begin\n+x"));
  const std::string fields = R"({"input":"Hi",)" + std::string(kTools);
  const json::value whole = created(fields + "}");
  EXPECT_EQ(whole.at("status"), "completed");
  const json::array& output = whole.at("output").as_array();
  ASSERT_EQ(output.size(), 5U);
  EXPECT_EQ(output[1].at("content").at(0).at("text"), "Look:");
  EXPECT_EQ(output[2].at("name"), "ls");
  EXPECT_EQ(output[2].at("arguments"), R"({"path": "a \"b\""})");
  EXPECT_EQ(output[3].at("namespace"), "git");
  EXPECT_EQ(output[3].at("name"), "log");
  EXPECT_EQ(output[3].at("arguments"), R"({"n": 3})");
  EXPECT_EQ(output[4].at("type"), "custom_tool_call");
  EXPECT_EQ(output[4].at("input"), "*** Begin\n+x");
  EXPECT_EQ(whole.at("tools").as_array().size(), 4U);

  const TestReply stream = post(kResponses, fields + R"(,"stream":true})");
  EXPECT_EQ(stream.header("x-ignored-params"), "tools[0]");
  const json::value last = json::parse(stream.events().back());
  const json::array& streamed = last.at("response").at("output").as_array();
  ASSERT_EQ(streamed.size(), 5U);
  for (std::size_t i = 1; i < streamed.size(); ++i) {
    for (const char* key : {"type", "content", "namespace", "name", "arguments", "input"}) {
      const json::value* want = output[i].as_object().if_contains(key);
      const json::value* got = streamed[i].as_object().if_contains(key);
      EXPECT_EQ(want == nullptr, got == nullptr);
      EXPECT_TRUE(want == nullptr || *want == *got) << key;
    }
  }
}

TEST_F(ResponsesTest, CallsAndTheirResultsComeBackAsTheModelWroteThem) {
  const std::string call = markup("patch", "input", "*** Begin");
  start_saying("</think>\n\n" + call);
  const std::string tools = std::string(",") + kTools;
  const json::value first = created(R"({"input":"Hi")" + tools + "}");
  const std::string call_id(first.at("output").at(0).at("call_id").as_string());
  created(R"({"input":[{"type":"custom_tool_call_output","call_id":")" + call_id +
          R"(","output":"Done!"}],"previous_response_id":")" + id_of(first) + "\"" + tools + "}");
  EXPECT_THAT(last_prompt(), ::testing::HasSubstr(call));
  EXPECT_THAT(last_prompt(), ::testing::HasSubstr("<tool_response>\nDone!\n</tool_response>"));
}

TEST_F(ResponsesTest, BadToolsAreNamedAsSent) {
  start_saying("x");
  const auto param = [&](const std::string& fields) {
    const json::value reply = post(kResponses, R"({"input":"Hi",)" + fields + "}").json();
    return std::string(reply.at("error").at("param").as_string());
  };
  EXPECT_EQ(param(R"("tools":[{"type":"mcp"},{"type":"function","name":"a b"}])"), "tools[1].name");
  EXPECT_EQ(
      param(R"("tools":[{"type":"namespace","name":"n","tools":[{"type":"function","name":"f"},
      {"type":"function","name":"f"}]}])"),
      "tools[0].tools[1].name");
  EXPECT_EQ(param(R"("tools":[{"type":"web_search"}],"tool_choice":"required")"), "tool_choice");
}

TEST_F(ResponsesTest, InputTokensAreThoseOfThePrompt) {
  start_saying("x");
  const std::string body = R"({"input":"How many?","instructions":"Count."})";
  const json::value counted = post("/v1/responses/input_tokens", body).json();
  EXPECT_EQ(counted.at("object"), "response.input_tokens");
  EXPECT_EQ(counted.at("input_tokens"), created(body).at("usage").at("input_tokens"));
  EXPECT_EQ(post("/v1/responses/input_tokens", "{").status, 400);
}

TEST_F(ResponsesTest, ThePromptMustFit) {
  start_saying("x");
  const TestReply reply =
      post(kResponses, R"({"input":")" + std::string(20000, '#') + R"(","max_output_tokens":5})");
  EXPECT_EQ(reply.status, 400);
  EXPECT_EQ(reply.json().at("error").at("code"), "context_length_exceeded");
  EXPECT_EQ(reply.json().at("error").at("param"), "input");
}

TEST_F(ResponsesTest, UpgradesAndWrongMethodsAreRefusedAtOnce) {
  start_saying("x");
  TestClient client(port());
  client.send_get(kResponses, "Connection: Upgrade\r\nUpgrade: websocket\r\n");
  const TestReply upgrade = client.reply();
  EXPECT_EQ(upgrade.status, 426);
  EXPECT_EQ(upgrade.json().at("error").at("code"), "upgrade_required");
  EXPECT_EQ(get(kResponses).header("allow"), "POST, OPTIONS");
  EXPECT_EQ(send("PUT", std::string(kResponses) + "/resp_1").header("allow"),
            "GET, HEAD, POST, DELETE, OPTIONS");
}

}  // namespace
}  // namespace sluice
