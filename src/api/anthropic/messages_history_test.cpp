// How Anthropic histories become turns: every kind of block, order, and what must never be refused.
#include "api/anthropic/messages_history.h"

#include <gtest/gtest.h>

#include "api/chat/test_turns.h"
#include "api/fields/json_text.h"

namespace sluice {
namespace {

// "s:..|u:..|a(reasoning):..|t:.." of the messages, or the error.
std::string turns_of(const std::string& messages) {
  FieldReport report;
  const ToolTexts tools{{"grep", R"({"name":"grep"})"}};
  const auto turns = read_anthropic_messages(*parse_json(messages), "messages", {tools, report});
  if (report.failed()) {
    return "error " + report.error().param + ": " + report.error().message;
  }
  std::string text;
  for (const ChatTurn& turn : turns) {
    text += text.empty() ? "" : "|";
    text += "suat"[static_cast<std::size_t>(turn.role)];
    text += turn.reasoning.empty() ? "" : "(" + turn.reasoning + ")";
    text += ":" + shown_text(turn) + (turn.calls.empty() ? "" : to_json(turn.calls));
  }
  return text;
}

std::string message(const std::string& role, const std::string& blocks) {
  return R"({"role":")" + role + R"(","content":[)" + blocks + "]}";
}

std::string user(const std::string& blocks) {
  return "[" + message("user", blocks) + "]";
}

std::string text(const std::string& words) {
  return R"({"type":"text","text":")" + words + "\"}";
}

std::string system_of(const std::string& content) {
  FieldReport report;
  const ToolTexts tools;
  return read_anthropic_system(*parse_json(content), "system", {tools, report}).text;
}

TEST(AnthropicBlocks, TextGoesOnAndNeighboursMerge) {
  EXPECT_EQ(turns_of(R"([{"role":"user","content":"hi"}])"), "u:hi");
  EXPECT_EQ(turns_of(user(text("a") + "," + text("b"))), "u:ab");
  EXPECT_EQ(turns_of("[" + message("user", text("a")) + "," + message("user", text("b")) + "," +
                     message("assistant", text("c")) + "," + message("assistant", text("d")) + "]"),
            "u:a\n\nb|a:c\n\nd");
}

TEST(AnthropicBlocks, DocumentsAndSearchResultsAreParagraphs) {
  const std::string document =
      R"({"type":"document","title":"T","context":"C","source":{"type":"text",)"
      R"("media_type":"text/plain","data":"D"}})";
  EXPECT_EQ(turns_of(user(text("a") + "," + document + "," + text("b"))), "u:a\n\nT\nC\nD\n\nb");
  EXPECT_EQ(turns_of(user(R"({"type":"document","source":{"type":"content","content":[)" +
                          text("x") + "," + text("y") + "]}}")),
            "u:x\ny");
  EXPECT_EQ(turns_of(user(R"({"type":"search_result","source":"http://s","title":"T","content":[)" +
                          text("x") + R"(],"citations":{"enabled":true}})")),
            "u:T\nhttp://s\nx");
}

TEST(AnthropicBlocks, WhatCannotBeShownIsRefused) {
  EXPECT_EQ(turns_of(user(R"({"type":"document","source":{"type":"base64","media_type":)"
                          R"("application/pdf","data":"AA=="}})")),
            "error messages[0].content[0]: messages[0].content[0] has a source of type 'base64': "
            "this server reads documents of type 'text' or 'content' only");
  EXPECT_EQ(turns_of(user(R"({"type":"image","source":{"type":"file","file_id":"f"}})")),
            "error messages[0].content[0].source: messages[0].content[0].source names a file, but "
            "this server keeps none");
  EXPECT_EQ(turns_of(user(R"({"type":"image","source":{"type":"base64","data":"AA=="}})")),
            "error messages[0].content[0].source.media_type: "
            "messages[0].content[0].source.media_type is required");
  EXPECT_EQ(turns_of(user(R"({"type":"image","source":{"type":"disk"}})")),
            "error messages[0].content[0].source.type: messages[0].content[0].source.type is "
            "'disk', want base64, url or file");
  EXPECT_EQ(turns_of(user(R"({"type":"image"})")),
            "error messages[0].content[0].source: messages[0].content[0].source is required");
}

const std::string kImage =
    R"({"type":"image","source":{"type":"base64","media_type":"image/png","data":"AA=="}})";

TEST(AnthropicImages, StayAtTheirPlaces) {
  EXPECT_EQ(turns_of(user(text("a") + "," + kImage + "," + text("b"))), "u:a<I>b");
  EXPECT_EQ(turns_of(user(kImage)), "u:<I>");
  const std::string document = R"({"type":"document","source":{"type":"text","data":"D"}})";
  EXPECT_EQ(turns_of(user(document + "," + kImage + "," + document)), "u:D\n\n<I>\n\nD");
  EXPECT_EQ(turns_of("[" + message("user", kImage) + "," + message("user", text("b")) + "]"),
            "u:<I>\n\nb");
}

TEST(AnthropicImages, StandInResultsOfTools) {
  const std::string call = R"({"type":"tool_use","id":"toolu_1","name":"f","input":{}})";
  const auto result = [&](const std::string& content, const std::string& more = "") {
    return turns_of("[" + message("assistant", call) + "," +
                    message("user", R"({"type":"tool_result","tool_use_id":"toolu_1")" + more +
                                        R"(,"content":[)" + content + "]}," + text("go on")) +
                    "]");
  };
  const std::string before =
      R"(a:[{"id":"call_1","type":"function","function":{"name":"f","arguments":{}}}]|)";
  EXPECT_EQ(result(text("a") + "," + text("b") + "," + kImage + "," + text("c")),
            before + "t:a\nb<I>c|u:go on");
  EXPECT_EQ(result(kImage), before + "t:<I>|u:go on");
  EXPECT_EQ(result(kImage, R"(,"is_error":true)"), before + "t:Error: <I>|u:go on");
}

TEST(AnthropicImages, TellWhereTheirBytesAre) {
  FieldReport report;
  const ToolTexts tools;
  const auto turns = read_anthropic_messages(
      *parse_json(user(kImage + R"(,{"type":"image","source":{"type":"url","url":"http://x"}})")),
      "messages", {tools, report});
  ASSERT_FALSE(report.failed());
  ASSERT_EQ(turns[0].media.size(), 2U);
  const MediaSource& data = turns[0].media[0].source;
  EXPECT_EQ(*data.texts.at(0), "AA==");
  EXPECT_TRUE(data.base64_only);
  EXPECT_EQ(data.path, "messages[0].content[0].source.data");
  const MediaSource& url = turns[0].media[1].source;
  EXPECT_EQ(*url.texts.at(0), "http://x");
  EXPECT_FALSE(url.base64_only);
}

TEST(AnthropicImages, CannotStandElsewhere) {
  const std::string refused = "error messages[0].content[0]: messages[0].content[0] is an image";
  EXPECT_EQ(turns_of("[" + message("system", kImage) + "]").rfind(refused, 0), 0U);
  EXPECT_EQ(turns_of("[" + message("assistant", kImage) + "]").rfind(refused, 0), 0U);
  const std::string document =
      R"({"type":"document","source":{"type":"content","content":[)" + kImage + "]}}";
  EXPECT_EQ(turns_of(user(document)).rfind("error messages[0].content[0].source.content[0]:", 0),
            0U);
}

TEST(AnthropicBlocks, AssistantHistory) {
  EXPECT_EQ(
      turns_of("[" +
               message("assistant",
                       R"({"type":"thinking","thinking":"r","signature":"from elsewhere"},)"
                       R"({"type":"redacted_thinking","data":"xx"},)" +
                           text("t") +
                           R"(,{"type":"tool_use","id":"toolu_1","name":"f","input":{"a":1}})") +
               "]"),
      R"(a(r):t[{"id":"call_1","type":"function","function":{"name":"f","arguments":{"a":1}}}])");
  EXPECT_EQ(
      turns_of("[" + message("assistant", R"({"type":"tool_use","id":"x","input":{}})") + "]"),
      "error messages[0].content[0].name: messages[0].content[0].name is required");
}

TEST(AnthropicBlocks, ResultsComeFirstAndInTheOrderOfTheirCalls) {
  const std::string calls =
      message("assistant", R"({"type":"tool_use","id":"1","name":"f","input":{}},)"
                           R"({"type":"tool_use","id":"2","name":"g","input":{}})");
  const std::string results = message(
      "user", text("and") + R"(,{"type":"tool_result","tool_use_id":"2","content":"two"},)" +
                  R"({"type":"tool_result","tool_use_id":"9","content":"lost"},)" +
                  R"({"type":"tool_result","tool_use_id":"1","content":[)" + text("one") + "," +
                  text("more") + "]}");
  const std::string all = turns_of("[" + calls + "," + results + "]");
  EXPECT_EQ(all.substr(all.find("|t:")), "|t:one\nmore|t:two|t:lost|u:and");
  EXPECT_EQ(turns_of(user(R"({"type":"tool_result","tool_use_id":"1"})")), "t:");
}

TEST(AnthropicBlocks, FailedResultsSaySo) {
  const auto result = [](const std::string& content) {
    return turns_of(user(R"({"type":"tool_result","is_error":true,"content":")" + content + "\"}"));
  };
  EXPECT_EQ(result("no such file"), "t:Error: no such file");
  EXPECT_EQ(result("Error: no"), "t:Error: no");
  EXPECT_EQ(result(""), "t:Error: ");
}

TEST(AnthropicBlocks, SystemTurnsAndSystemBlocks) {
  EXPECT_EQ(turns_of(R"([{"role":"user","content":"q"},{"role":"system","content":"S"}])"),
            "u:q|s:S");
  EXPECT_EQ(
      turns_of(user(text("q") + R"(,{"type":"mid_conv_system","content":[)" + text("S") + "]}")),
      "u:q|s:S");
}

TEST(AnthropicBlocks, UnknownBlocksAreNeverRefused) {
  EXPECT_EQ(turns_of(user(R"({"type":"from_the_future","text":"t"},{"type":"fallback","x":1})")),
            "u:t");
  FieldReport report;
  const ToolTexts tools;
  read_anthropic_messages(*parse_json(user(R"({"type":"fallback","x":1})")), "messages",
                          {tools, report});
  EXPECT_EQ(report.take_ignored().front(), "messages[0].content[0]");
}

TEST(AnthropicBlocks, ReferencesShowTheTool) {
  EXPECT_EQ(turns_of(user(R"({"type":"tool_result","content":[)"
                          R"({"type":"tool_reference","tool_name":"grep"},)"
                          R"({"type":"tool_reference","tool_name":"unknown"}]})")),
            "t:{\"name\":\"grep\"}\nunknown");
  const std::string additions =
      R"([{"role":"user","content":"q"},{"role":"system","content":[)"
      R"({"type":"tool_addition","tool":{"type":"tool_reference","name":"grep"}},)"
      R"({"type":"tool_addition","tool":{"type":"tool_definition","definition":)"
      R"({"name":"f","input_schema":{"type":"object"}}}},)"
      R"({"type":"tool_removal","tool":{"type":"tool_reference","name":"grep"}}]}])";
  EXPECT_EQ(turns_of(additions),
            "u:q|s:{\"name\":\"grep\"}\n\n{\"type\":\"function\",\"function\":{\"name\":\"f\","
            "\"parameters\":{\"type\":\"object\"}}}");
}

TEST(AnthropicBlocks, MarksAreWhereTheirBlocksEnd) {
  FieldReport report;
  const ToolTexts tools;
  const std::string marked = R"({"type":"text","text":"abc","cache_control":{"type":"ephemeral"}})";
  const auto turns = read_anthropic_messages(
      *parse_json("[" + message("user", text("xy") + "," + marked + "," + text("z")) + "," +
                  message("user", marked) + "," +
                  message("user", R"({"type":"tool_result","content":"12","cache_control":{}})") +
                  "]"),
      "messages", {tools, report});
  ASSERT_EQ(turns.size(), 2U);
  EXPECT_EQ(turns[0].text, "xyabcz\n\nabc");
  EXPECT_EQ(turns[0].cache_marks, (std::vector<std::size_t>{5, 11}));
  EXPECT_EQ(turns[1].cache_marks, std::vector<std::size_t>{2});
  EXPECT_EQ(report.take_ignored().size(), 0U);
}

TEST(AnthropicBlocks, WrongTypesNameTheirPlace) {
  EXPECT_EQ(turns_of("{}"), "error messages: messages is an object, want an array");
  EXPECT_EQ(turns_of("[]"), "error messages: messages is empty, want at least one message");
  EXPECT_EQ(turns_of(R"([{"content":"x"}])"),
            "error messages[0].role: messages[0].role is required");
  EXPECT_EQ(turns_of(R"([{"role":"tool","content":"x"}])"),
            "error messages[0].role: messages[0].role is 'tool', want user, assistant or system");
  EXPECT_EQ(turns_of(R"([{"role":"user","content":5}])"),
            "error messages[0].content: messages[0].content is a number, want a string or an array "
            "of blocks");
  EXPECT_EQ(turns_of(user("5")),
            "error messages[0].content[0]: messages[0].content[0] is a number, want an object");
  EXPECT_EQ(turns_of(user(R"({"text":"x"})")),
            "error messages[0].content[0].type: messages[0].content[0].type is required");
  EXPECT_EQ(turns_of(user(R"({"type":"text"})")),
            "error messages[0].content[0].text: messages[0].content[0].text is required");
}

TEST(AnthropicSystem, BlocksAreParagraphsAndTheBillingLineIsDropped) {
  EXPECT_EQ(system_of(R"("one")"), "one");
  EXPECT_EQ(system_of("[" + text("one") + "," + text("two") + "]"), "one\n\ntwo");
  const std::string billing = "x-anthropic-billing-header: cc_version=1; cch=abc;";
  EXPECT_EQ(system_of("[" + text(billing) + "," + text("two") + "]"), "two");
  EXPECT_EQ(system_of("\"" + billing + "\""), "");
  EXPECT_EQ(system_of("\"" + billing + R"(\n\nrest")"), "rest");
}

}  // namespace
}  // namespace sluice
