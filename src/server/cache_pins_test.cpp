// Pins over HTTP: what reaches the engine, and what operators are told.
#include "api/cache_pins.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "server/generation_plan.h"
#include "server/test_server.h"

namespace sluice {
namespace {

using ::testing::HasSubstr;
using ::testing::MatchesRegex;
using ::testing::Not;

constexpr const char* kPins = "/v1/cache/pins";

std::string ids_json(std::size_t count) {
  std::string text = "[1";
  for (std::size_t i = 1; i < count; ++i) {
    text += "," + std::to_string(i % 100);
  }
  return text + "]";
}

class CachePins : public ServerTest {
 protected:
  CachePins() : ServerTest(4096) {}

  // The tokens that the request makes the engine pin.
  std::vector<TokenId> pinned_tokens(const std::string& body) {
    const TestReply reply = post(kPins, body);
    EXPECT_EQ(reply.status, 201) << reply.body;
    return engine_.requests().back().token_ids;
  }

  static std::string words(int count) {
    std::string text;
    for (int i = 0; i < count; ++i) {
      text += "word" + std::to_string(i) + " ";
    }
    return text;
  }

  // The first whole blocks of what a chat request computes.
  std::vector<TokenId> chat_tokens(const std::string& fields, std::size_t count) {
    const TestReply reply = post("/apply-template", "{" + fields + R"(,"return_tokens":true})");
    const auto json = reply.json();  // outlives the loop
    std::vector<TokenId> ids;
    for (const auto& id : json.at("tokens").as_array()) {
      ids.push_back(static_cast<TokenId>(id.as_int64()));
    }
    EXPECT_GE(ids.size(), count);
    ids.resize(count);
    return ids;
  }
};

TEST_F(CachePins, AreMadeListedAndDeleted) {
  start();
  EXPECT_EQ(get(kPins).body, R"({"object":"list","data":[]})");
  const TestReply made =
      post(kPins, R"({"name":"docs","token_ids":)" + ids_json(200) + R"(,"ttl_s":3600})");
  ASSERT_EQ(made.status, 201) << made.body;
  const auto pin = made.json().as_object();
  const std::string id(pin.at("id").as_string());
  EXPECT_THAT(id, MatchesRegex("pin_[0-9a-f]+"));
  EXPECT_EQ(pin.at("name"), "docs");
  EXPECT_EQ(pin.at("tokens"), 192);  // three whole blocks
  EXPECT_EQ(pin.at("bytes"), 192);
  EXPECT_EQ(pin.at("hits"), 0);
  EXPECT_TRUE(pin.at("last_used").is_null());
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(now).count();
  EXPECT_NEAR(static_cast<double>(pin.at("expires_at").as_int64()),
              static_cast<double>(seconds + 3600), 60.0);

  const Request request = engine_.requests().back();
  EXPECT_EQ(request.stop.tokens_max, 0);
  EXPECT_EQ(request.pin->seconds, 3600.0);
  EXPECT_EQ(request.cache_salt, cache_namespace("", ""));

  const TestReply again = post(kPins, R"({"token_ids":)" + ids_json(195) + "}");
  EXPECT_EQ(again.status, 200);
  EXPECT_EQ(again.json().at("id"), pin.at("id"));
  EXPECT_EQ(get(kPins).json().at("data").as_array().size(), 1U);
  EXPECT_EQ(get("/v1/cache").json().at("pinned").as_array().size(), 1U);
  EXPECT_THAT(get("/metrics").body, HasSubstr("\nserver_pinned_prefixes 1\n"));

  EXPECT_EQ(get(std::string(kPins) + "/" + id).json().at("id"), pin.at("id"));
  TestClient client(port());
  ASSERT_TRUE(client.send("DELETE /cache/pins/" + id + " HTTP/1.1\r\nHost: localhost\r\n\r\n"));
  EXPECT_EQ(client.reply().body, R"({"id":")" + id + R"(","deleted":true})");
  ASSERT_TRUE(client.send("DELETE /cache/pins/" + id + " HTTP/1.1\r\nHost: localhost\r\n\r\n"));
  const TestReply gone = client.reply();
  EXPECT_EQ(gone.status, 404);
  EXPECT_THAT(gone.body, HasSubstr("there is no pin '" + id + "'"));
  EXPECT_EQ(get(std::string(kPins) + "/" + id).status, 404);
  EXPECT_EQ(get(std::string(kPins) + "/" + id + "/x").status, 404);
}

TEST_F(CachePins, TextsAreTokenisedAsPromptsAre) {
  start();
  const std::string text = words(100);
  const auto ids = pinned_tokens(R"({"prompt":"<|im_start|>user\n)" + text + R"("})");
  auto expected = tokens("<|im_start|>user\n" + text);
  expected.resize(expected.size() / 64 * 64);
  EXPECT_EQ(ids, expected);
}

// What is pinned is what every conversation with this beginning computes first.
TEST_F(CachePins, ConversationsArePinnedUpToWhereTheyPart) {
  start();
  const std::string system = R"({"role":"system","content":")" + words(120) + R"("})";
  const std::string tools =
      R"("tools":[{"type":"function","function":{"name":"look_up","parameters":{}}}])";
  const std::string asked = R"("messages":[)" + system + R"(,{"role":"user","content":"Why?"}])";

  const auto by_system = pinned_tokens(R"({"system":")" + words(120) + R"(",)" + tools + "}");
  EXPECT_GE(by_system.size(), 128U);
  EXPECT_EQ(by_system, chat_tokens(asked + "," + tools, by_system.size()));
  EXPECT_EQ(pinned_tokens(R"({"system":")" + words(120) + R"(","cache_salt":"s",)" + tools + "}"),
            by_system);
  const TestReply same = post(kPins, R"({"messages":[)" + system + "]," + tools + "}");
  EXPECT_EQ(same.status, 200) << same.body;

  const std::string long_question =
      R"("messages":[)" + system + R"(,{"role":"user","content":")" + words(90) + R"("}])";
  const auto by_user = pinned_tokens("{" + long_question + "}");
  const auto whole = chat_tokens(long_question, by_user.size());
  EXPECT_EQ(by_user, whole);

  const std::string answered = R"("messages":[)" + system +
                               R"(,{"role":"user","content":"Q"},{"role":"assistant","content":")" +
                               words(80) + R"("})";
  const auto by_answer = pinned_tokens("{" + answered + "]}");
  EXPECT_EQ(by_answer,
            chat_tokens(answered + R"(,{"role":"user","content":"More"}])", by_answer.size()));
}

TEST_F(CachePins, BadOnesNameTheField) {
  start();
  const auto refused = [this](const std::string& body) {
    const TestReply reply = post(kPins, body);
    EXPECT_EQ(reply.status, 400) << body << reply.body;
    return reply.body;
  };
  const std::string ids = R"("token_ids":)" + ids_json(64);
  EXPECT_THAT(refused("{}"), HasSubstr(R"("param":"messages")"));
  EXPECT_THAT(refused("{" + ids + R"(,"prompt":"x"})"), HasSubstr("prompt and token_ids are both"));
  EXPECT_THAT(refused("{" + ids + R"(,"tools":[]})"), HasSubstr(R"("param":"tools")"));
  EXPECT_THAT(refused("{" + ids + R"(,"ttl_s":0})"), HasSubstr(R"("param":"ttl_s")"));
  EXPECT_THAT(refused("{" + ids + R"(,"ttl_s":"1"})"), HasSubstr("invalid_type"));
  EXPECT_THAT(refused("{" + ids + R"(,"name":")" + std::string(129, 'n') + R"("})"),
              HasSubstr("name has 129 bytes, want at most 128"));
  EXPECT_THAT(refused("{" + ids + R"(,"cache_salt":""})"), HasSubstr(R"("param":"cache_salt")"));
  EXPECT_THAT(refused(R"({"token_ids":[1,2,3]})"), HasSubstr("has 3 tokens, want at least 64"));
  EXPECT_THAT(refused(R"({"token_ids":[]})"), HasSubstr(R"("param":"token_ids")"));
  EXPECT_THAT(refused(R"({"token_ids":[1,-2]})"), HasSubstr(R"("param":"token_ids[1])"));
  EXPECT_THAT(refused(R"({"token_ids":"1"})"), HasSubstr(R"("param":"token_ids")"));
  EXPECT_THAT(refused(R"({"prompt":"short"})"), HasSubstr(R"("param":"prompt")"));
  EXPECT_THAT(refused(R"({"prompt":["a"]})"), HasSubstr(R"("param":"prompt")"));
  EXPECT_THAT(refused(R"({"system":[]})"), HasSubstr(R"("param":"system")"));
  EXPECT_THAT(refused(R"({"system":"short"})"), HasSubstr(R"("param":"system")"));
  EXPECT_THAT(refused(R"({"messages":[]})"), HasSubstr(R"("param":"messages)"));
  EXPECT_THAT(refused(R"({"messages":[{"role":"system","content":1}]})"),
              HasSubstr(R"("param":"messages[0].content)"));
  EXPECT_THAT(refused(R"({"messages":[{"role":"user","content":"x"}],)"
                      R"("continue_final_message":true})"),
              HasSubstr(R"("param":"continue_final_message")"));
  EXPECT_THAT(refused(R"({"token_ids":)" + ids_json(4096) + "}"),
              HasSubstr("context_length_exceeded"));
  EXPECT_TRUE(engine_.requests().empty());

  const TestReply extra = post(kPins, "{" + ids + R"(,"colour":1})");
  EXPECT_EQ(extra.status, 201);
  EXPECT_EQ(extra.header("x-ignored-params"), "colour");
}

TEST_F(CachePins, OverTheBudgetIsAConflict) {
  start();
  FakeScript script;
  script.pin_error = Error{ErrorCode::resource_exhausted, "takes 9 bytes more", "pin"};
  engine_.set_script(script);
  const TestReply reply = post(kPins, R"({"token_ids":)" + ids_json(64) + "}");
  EXPECT_EQ(reply.status, 409);
  EXPECT_THAT(reply.body, HasSubstr(R"("code":"pin_budget_exceeded")"));
  EXPECT_THAT(reply.body, HasSubstr("takes 9 bytes more"));
  EXPECT_EQ(reply.header("x-should-retry"), "false");
  engine_.refuse_with(Error{ErrorCode::resource_exhausted, "the queue is full", ""});
  EXPECT_EQ(post(kPins, R"({"token_ids":)" + ids_json(64) + "}").status, 429);
}

TEST_F(CachePins, ArePinnedForOneKey) {
  config_.api_keys = {"one", "two"};
  config_.admin_keys = {"root"};
  start();
  const std::string body = R"({"token_ids":)" + ids_json(64) + R"(,"cache_salt":"s"})";
  EXPECT_EQ(post(kPins, body, "x-api-key: one\r\n").status, 403);
  EXPECT_EQ(get(kPins, "x-api-key: one\r\n").status, 403);
  const TestReply keyless = post(kPins, body, "x-api-key: root\r\n");
  EXPECT_EQ(keyless.status, 400);
  EXPECT_THAT(keyless.body, HasSubstr(R"("param":"x-api-key")"));
  EXPECT_EQ(post(kPins, body, "Authorization: Bearer root\r\nx-api-key: two\r\n").status, 201);
  EXPECT_EQ(engine_.requests().back().cache_salt, cache_namespace("two", "s"));
  const TestReply list = get(kPins, "x-api-key: root\r\n");
  EXPECT_EQ(list.json().at("data").as_array().size(), 1U);
  EXPECT_THAT(list.body, Not(HasSubstr("two")));
}

}  // namespace
}  // namespace sluice
