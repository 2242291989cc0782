// How histories become turns: roles, content parts, folding, and what must never be refused.
#include "api/chat/chat_messages.h"

#include <gtest/gtest.h>

#include "api/chat/chat_history.h"
#include "api/fields/json_text.h"

namespace sluice {
namespace {

// "s:..|u:..|a(reasoning):..|t:.." of the messages, or the error.
std::string turns_of(const std::string& messages, const HistoryOptions& options = {}) {
  FieldReport report;
  auto turns = read_chat_turns(*parse_json(messages), "messages", report);
  if (report.failed()) {
    return "error " + report.error().param + ": " + report.error().message;
  }
  const ChatHistory history = normalise_turns(std::move(turns), options);
  std::string text;
  for (const ChatTurn& turn : history.turns) {
    text += text.empty() ? "" : "|";
    text += "suat"[static_cast<std::size_t>(turn.role)];
    text += turn.reasoning.empty() ? "" : "(" + turn.reasoning + ")";
    text += ":" + turn.text + (turn.calls.empty() ? "" : to_json(turn.calls));
  }
  if (history.continuation) {
    text += "|>(" + history.continuation->reasoning + ")" + history.continuation->text +
            (history.continuation->reasoning_open ? "*" : "");
  }
  return text;
}

std::string message(const std::string& role, const std::string& text) {
  return R"({"role":")" + role + R"(","content":")" + text + "\"}";
}

std::string list(std::initializer_list<std::string> messages) {
  std::string text = "[";
  for (const std::string& one : messages) {
    text += (text.size() > 1 ? "," : "") + one;
  }
  return text + "]";
}

TEST(ChatTurns, LeadingSystemMessagesAreJoined) {
  EXPECT_EQ(
      turns_of(list({message("developer", "A"), message("system", "B"), message("user", "q")})),
      "s:A\n\nB|u:q");
}

TEST(ChatTurns, LaterSystemMessagesStayWhereTheyWere) {
  const std::string later = list({message("user", "q"), message("system", "S")});
  EXPECT_EQ(turns_of(later), "u:q\n\nS");
  EXPECT_EQ(turns_of(later, {.hoist_system = true}), "s:S|u:q");
  EXPECT_EQ(turns_of(list({message("system", "A"), message("user", "q"), message("assistant", "a"),
                           message("system", "B"), message("user", "r")}),
                     {.hoist_system = true}),
            "s:A\n\nB|u:q|a:a|u:r");
  EXPECT_EQ(turns_of(list({message("user", "q"), message("assistant", "a"), message("system", "S"),
                           message("user", "r")})),
            "u:q|a:a|u:S\n\nr");
  EXPECT_EQ(
      turns_of(list({message("user", "q"), message("assistant", "a"), message("system", "S")})),
      "u:q|a:a|u:S");
  EXPECT_EQ(turns_of(list({message("user", "q"), message("assistant", "a"), message("system", "S"),
                           message("assistant", "b")})),
            "u:q|a:a|u:S|a:b");
}

TEST(ChatTurns, NothingComesBetweenCallsAndResults) {
  const std::string call =
      R"({"role":"assistant","content":null,"tool_calls":[{"id":"1","type":"function",)"
      R"("function":{"name":"f","arguments":"{\"a\":1}"}}]})";
  const std::string rendered =
      R"(a:[{"type":"function","function":{"name":"f","arguments":{"a":1}},"id":"1"}])";
  EXPECT_EQ(
      turns_of(list({message("user", "q"), call, message("system", "S"), message("tool", "r1"),
                     message("system", "T"), message("tool", "r2"), message("user", "n")})),
      "u:q|" + rendered + "|t:r1|t:r2\n\nS\n\nT|u:n");
  EXPECT_EQ(turns_of(list(
                {message("user", "q"), call, message("function", "r"), message("developer", "S")})),
            "u:q|" + rendered + "|t:r\n\nS");
}

TEST(ChatTurns, ThereIsAlwaysAUserTurn) {
  EXPECT_EQ(turns_of(list({message("system", "S")})), "u:S");
  EXPECT_EQ(turns_of(list({message("system", "S"), message("assistant", "a")})), "s:S|u:|a:a");
  EXPECT_EQ(turns_of(list({message("assistant", "a")})), "u:|a:a");
  EXPECT_EQ(turns_of(list({message("tool", "r")})), "u:|t:r");
  EXPECT_EQ(turns_of(list({message("system", "S"), message("assistant", "")})), "u:S");
}

TEST(ChatTurns, ContentParts) {
  EXPECT_EQ(turns_of(R"([{"role":"user","content":[{"type":"text","text":"a"},"b",
              {"type":"input_text","text":"c"},{"type":"novel","text":"d"}]}])"),
            "u:abcd");
  EXPECT_EQ(turns_of(R"([{"role":"user","content":"q"},{"role":"tool","content":[
              {"type":"text","text":"a"},{"type":"text","text":"b"}]}])"),
            "u:q|t:a\nb");
  EXPECT_EQ(turns_of(R"([{"role":"user","content":"q"},{"role":"assistant","content":[
              {"type":"thinking","thinking":"r"},{"type":"text","text":"b"}]}])"),
            "u:q|a(r):b");
  EXPECT_EQ(turns_of(R"([{"role":"user"},{"role":"user","content":null}])"), "u:|u:");
}

TEST(ChatTurns, ReasoningFromEverySpelling) {
  const auto with = [](const std::string& fields) {
    return turns_of(R"([{"role":"user","content":"q"},{"role":"assistant",)" + fields + "}]");
  };
  const std::string want = "u:q|a(r):b";
  EXPECT_EQ(with(R"("content":"b","reasoning_content":"r")"), want);
  EXPECT_EQ(with(R"("content":"b","reasoning":"r")"), want);
  EXPECT_EQ(with(R"("content":"b","reasoning_content":"r","reasoning":"other")"), want);
  EXPECT_EQ(with(R"("content":"b","reasoning_details":[{"text":"r"},{"x":1}])"), want);
  EXPECT_EQ(with(R"("content":"<think>\nr\n</think>\n\nb")"), want);
  EXPECT_EQ(with(R"("content":"b <think>r</think>")"), "u:q|a:b <think>r</think>");
}

TEST(ChatTurns, HistoryIsTolerated) {
  EXPECT_EQ(turns_of(R"([{"role":"user","content":"q"},
              {"role":"assistant","content":"a","tool_calls":[]},
              {"role":"assistant","tool_calls":null,"content":"b","refusal":null}])"),
            "u:q|a:a|a:b");
  EXPECT_EQ(turns_of(R"("[{\"role\":\"user\",\"content\":\"q\"}]")"), "u:q");
}

TEST(ChatTurns, ContinuedTurns) {
  const std::string open = list({message("user", "q"), message("assistant", "<think>\\nso")});
  EXPECT_EQ(
      turns_of(list({message("user", "q"), message("assistant", "Once")}), {.continue_last = true}),
      "u:q|>()Once");
  EXPECT_EQ(turns_of(open, {.continue_last = true}), "u:q|>()so*");
  EXPECT_EQ(turns_of(R"([{"role":"user","content":"q"},{"role":"assistant","content":"O",
                       "reasoning_content":"r","prefix":true}])"),
            "u:q|>(r)O");
  EXPECT_EQ(
      turns_of(list({message("user", "q"), message("assistant", "")}), {.continue_last = true}),
      "u:q");
  EXPECT_EQ(turns_of(list({message("user", "q"), message("assistant", "a")})), "u:q|a:a");
}

TEST(ChatTurns, ErrorsNameThePath) {
  EXPECT_EQ(turns_of("[]").rfind("error messages:", 0), 0U);
  EXPECT_EQ(turns_of("7").rfind("error messages:", 0), 0U);
  EXPECT_EQ(turns_of("[7]").rfind("error messages[0]:", 0), 0U);
  EXPECT_EQ(turns_of("[{}]").rfind("error messages[0].role:", 0), 0U);
  EXPECT_EQ(turns_of(R"([{"role":"bot"}])").rfind("error messages[0].role:", 0), 0U);
  EXPECT_EQ(turns_of(R"([{"role":"user","content":7}])").rfind("error messages[0].content:", 0),
            0U);
  EXPECT_EQ(turns_of(R"([{"role":"user","content":[{"type":"text"}]}])")
                .rfind("error messages[0].content[0].text:", 0),
            0U);
  FieldReport report;
  read_chat_turns(
      *parse_json(R"([{"role":"user","content":[{"type":"image_url","image_url":"x"}]}])"),
      "messages", report);
  ASSERT_TRUE(report.failed());
  EXPECT_EQ(report.error().kind, ApiErrorKind::unsupported_content);
  EXPECT_EQ(report.error().param, "messages[0].content[0]");
}

TEST(TemplateMessages, ReasoningIsAlwaysAString) {
  FieldReport report;
  auto turns = read_chat_turns(*parse_json(list({message("user", "q"), message("assistant", "a")})),
                               "messages", report);
  EXPECT_EQ(to_json(template_messages(turns)),
            R"([{"role":"user","content":"q"},)"
            R"({"role":"assistant","content":"a","reasoning_content":""}])");
}

}  // namespace
}  // namespace sluice
