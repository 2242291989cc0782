// Recorded loads, and the errors that say where one is wrong.
#include "load/trace.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "base/test_errors.h"

namespace sluice::load {
namespace {

std::string line(const std::string& fields, const std::string& text = "hi") {
  return "{" + fields + R"(,"body":{"messages":[{"role":"user","content":")" + text + R"("}]}})" +
         "\n";
}

std::string text_of(const Conversation& conversation) {
  return std::string(conversation.next_body().at("messages").at(0).at("content").as_string());
}

TEST(TraceTest, ConversationsInOrderOfTheirBeginning) {
  Trace trace =
      parse_trace(line(R"("at":2,"conversation":"x")", "x1") + "\n" + line(R"("at":1.5)", "alone") +
                      line(R"("at":1.5)", "too") + line(R"("at":9,"conversation":"x")", "x2") +
                      line(R"("at":0,"conversation":3)", "three") +
                      line(R"("at":4,"conversation":"")", "empty"),
                  "t")
          .value();
  EXPECT_EQ(trace.requests, 6U);
  std::vector<std::pair<double, std::string>> seen;
  for (const PlannedConversation& planned : trace.conversations) {
    EXPECT_EQ(planned.at, planned.conversation->next_at());
    seen.emplace_back(*planned.at, text_of(*planned.conversation));
  }
  EXPECT_EQ(seen, (std::vector<std::pair<double, std::string>>{
                      {0, "three"}, {1.5, "alone"}, {1.5, "too"}, {2, "x1"}, {4, "empty"}}));
  Conversation& x = *trace.conversations[3].conversation;
  x.take(nullptr);  // a failure does not end a recorded conversation
  ASSERT_FALSE(x.is_over());
  EXPECT_EQ(x.next_at(), 9.0);
  EXPECT_EQ(text_of(x), "x2");
  x.take(nullptr);
  EXPECT_TRUE(x.is_over());
}

TEST(TraceTest, ErrorsNameLineAndField) {
  const std::string good = line(R"("at":1,"conversation":"x")");
  const std::vector<std::pair<std::string, std::string>> cases{
      {"nothing", "JSON"},
      {"[1]", "object"},
      {line(R"("at":-1)"), "at:"},
      {line(R"("at":"1")"), "at:"},
      {line(R"("conversation":"y")"), "at: is missing"},
      {line(R"("at":1,"conversation":1.5)"), "conversation:"},
      {line(R"("at":0.5,"conversation":"x")"), "line 1"},
      {line(R"("at":1,"extra":1)"), "extra:"},
      {R"({"at":1})", "body: is missing"},
      {R"({"at":1,"body":[]})", "body:"},
      {R"({"at":1,"body":{}})", "body.messages:"},
      {R"({"at":1,"body":{"messages":[]}})", "body.messages:"},
      {R"({"at":1,"body":{"messages":[1],"model":"m"}})", "body.model:"},
      {R"({"at":1,"body":{"messages":[1],"stream":true}})", "body.stream:"}};
  for (const auto& [text, part] : cases) {
    EXPECT_ERROR(parse_trace(good + text, "file"), ErrorCode::invalid_argument,
                 {"file line 2: ", part})
        << text;
  }
  EXPECT_ERROR(parse_trace("\n \n", "file"), ErrorCode::invalid_argument, {"no requests"});
}

}  // namespace
}  // namespace sluice::load
