// How histories become turns: roles, content parts, folding, and what must never be refused.
#include "api/chat/chat_messages.h"

#include <gtest/gtest.h>

#include "api/chat/chat_history.h"
#include "api/chat/test_turns.h"
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
    text += ":" + shown_text(turn) + (turn.calls.empty() ? "" : to_json(turn.calls));
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
}

std::string user(const std::string& parts) {
  return R"([{"role":"user","content":[)" + parts + "]}]";
}

std::string part(const std::string& text) {
  return R"({"type":"text","text":")" + text + "\"}";
}

constexpr const char* kImage = R"({"type":"image_url","image_url":{"url":"data:x"}})";
constexpr const char* kVideo = R"({"type":"video_url","video_url":"data:y"})";

TEST(ChatMedia, StaysAtItsPlaceInTheText) {
  EXPECT_EQ(turns_of(user(part("a") + "," + kImage + "," + part("b") + "," + kVideo)),
            "u:a<I>b<V>");
  EXPECT_EQ(turns_of(user(std::string(kImage) + "," + kImage)), "u:<I><I>");
  const std::string result = std::string(R"([{"role":"user","content":"q"},)") +
                             R"({"role":"tool","content":[)" + part("a") + "," + part("b") + "," +
                             kImage + "," + part("c") + "," + part("d") + "]}]";
  EXPECT_EQ(turns_of(result), "u:q|t:a\nb<I>c\nd");
}

TEST(ChatMedia, FollowsTheTextThatSystemMessagesJoin) {
  const std::string later = std::string("[") + R"({"role":"user","content":"q"},)" +
                            R"({"role":"assistant","content":"a"},)" +
                            R"({"role":"system","content":"S"},{"role":"user","content":[)" +
                            kImage + "," + part("r") + "]}," +
                            R"({"role":"system","content":"T"}])";
  EXPECT_EQ(turns_of(later), "u:q|a:a|u:S\n\n<I>r\n\nT");
}

TEST(ChatMedia, OnlyUsersAndToolsCanShowIt) {
  for (const std::string role : {"system", "developer", "assistant"}) {
    const std::string message =
        R"([{"role":")" + role + R"(","content":[)" + kImage + R"(]},{"role":"user"}])";
    EXPECT_EQ(turns_of(message).rfind("error messages[0].content[0]:", 0), 0U) << role;
  }
}

// The one picture or video of a user's message, or the path of the error.
MediaSource source_of(const std::string& json, std::string* error = nullptr) {
  FieldReport report;
  const auto turns = read_chat_turns(*parse_json(user(json)), "messages", report);
  if (error != nullptr) {
    *error = report.failed() ? report.error().param : "";
  } else {
    EXPECT_FALSE(report.failed()) << json << report.error().message;
  }
  return turns.empty() || turns[0].media.empty() ? MediaSource{} : turns[0].media[0].source;
}

TEST(ChatMedia, EverySpellingOfAnImage) {
  for (const std::string json :
       {R"({"type":"image_url","image_url":{"url":"data:x"}})",
        R"({"type":"image_url","image_url":"data:x"})",
        R"({"type":"input_image","image_url":"data:x"})", R"({"type":"image","image":"data:x"})",
        R"({"type":"image","image_url":{"url":"data:x"}})"}) {
    const MediaSource source = source_of(json);
    ASSERT_EQ(source.texts.size(), 1U) << json;
    EXPECT_EQ(*source.texts[0], "data:x") << json;
    EXPECT_EQ(source.kind, MediaKind::image);
  }
  const MediaSource image =
      source_of(R"({"type":"image_url","image_url":{"url":"x","detail":"low"},"min_pixels":10,)"
                R"("max_pixels":20})");
  EXPECT_EQ(image.path, "messages[0].content[0].image_url.url");
  EXPECT_EQ(image.detail, ImageDetail::low);
  EXPECT_EQ(image.pixels_min, 10);
  EXPECT_EQ(image.pixels_max, 20);
  EXPECT_EQ(source_of(R"({"type":"input_image","image_url":"x","detail":"high"})").detail,
            ImageDetail::high);
}

TEST(ChatMedia, VideosAndListsOfFrames) {
  for (const std::string json :
       {R"({"type":"video_url","video_url":{"url":"v"}})", R"({"type":"video","video":"v"})",
        R"({"type":"input_video","video_url":"v"})", R"({"type":"video","video":{"url":"v"}})"}) {
    const MediaSource source = source_of(json);
    ASSERT_EQ(source.texts.size(), 1U) << json;
    EXPECT_EQ(source.kind, MediaKind::video);
    EXPECT_FALSE(source.is_frames);
  }
  const MediaSource frames =
      source_of(R"({"type":"video","video":["a",{"url":"b"}],"fps":1.5,"max_frames":8})");
  ASSERT_EQ(frames.texts.size(), 2U);
  EXPECT_EQ(*frames.texts[1], "b");
  EXPECT_TRUE(frames.is_frames);
  EXPECT_EQ(frames.frames_per_second, 1.5);
  EXPECT_EQ(frames.frames_max, 8);
  EXPECT_EQ(frames.path, "messages[0].content[0].video");
}

TEST(ChatMedia, ErrorsNameThePath) {
  const auto error_of = [](const std::string& json) {
    std::string path;
    source_of(json, &path);
    return path;
  };
  const std::string at = "messages[0].content[0]";
  EXPECT_EQ(error_of(R"({"type":"image_url"})"), at + ".image_url");
  EXPECT_EQ(error_of(R"({"type":"image_url","image_url":7})"), at + ".image_url");
  EXPECT_EQ(error_of(R"({"type":"image_url","image_url":{}})"), at + ".image_url.url");
  EXPECT_EQ(error_of(R"({"type":"image_url","image_url":{"url":7}})"), at + ".image_url.url");
  EXPECT_EQ(error_of(R"({"type":"image_url","image_url":{"url":"x","detail":"odd"}})"),
            at + ".image_url.detail");
  EXPECT_EQ(error_of(R"({"type":"image","image":"x","min_pixels":0})"), at + ".min_pixels");
  EXPECT_EQ(error_of(R"({"type":"image","image":"x","min_pixels":2,"max_pixels":1})"),
            at + ".min_pixels");
  EXPECT_EQ(error_of(R"({"type":"image","image":["x"]})"), at + ".image");
  EXPECT_EQ(error_of(R"({"type":"video","video":[]})"), at + ".video");
  EXPECT_EQ(error_of(R"({"type":"video","video":[7]})"), at + ".video[0]");
  EXPECT_EQ(error_of(R"({"type":"video","video":"x","fps":0})"), at + ".fps");
  EXPECT_EQ(error_of(R"({"type":"video","video":"x","max_frames":0})"), at + ".max_frames");
  EXPECT_EQ(error_of(R"({"type":"input_image","file_id":"f"})"), at + ".file_id");
  EXPECT_EQ(error_of(R"({"type":"input_audio","input_audio":{}})"), at);
  EXPECT_EQ(error_of(R"({"type":"file","file":{}})"), at);
}

TEST(TemplateMessages, WhatShowsMediaIsAListOfParts) {
  FieldReport report;
  const auto turns =
      read_chat_turns(*parse_json(user(part("a") + "," + kImage + "," + part("b") + "," + kVideo)),
                      "messages", report);
  EXPECT_EQ(to_json(template_messages(turns)),
            R"([{"role":"user","content":[{"type":"text","text":"a"},{"type":"image"},)"
            R"({"type":"text","text":"b"},{"type":"video"}]}])");
  const auto media = media_of(turns);
  ASSERT_EQ(media.size(), 2U);
  EXPECT_EQ(*media[1].texts[0], "data:y");
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
