// Tool calls in answers, through the parser that serves all dialects: every text is also given
// split at every byte, and byte by byte, and must come out the same.
#include <gtest/gtest.h>

#include <random>

#include "api/answer/test_calls.h"

namespace sluice {
namespace {

const std::shared_ptr<const ToolSet>& tools() {
  static const auto made = make_tools(R"({
    "read": {"path": {"type": "string"}, "limit": {"type": "integer"}},
    "write": {"path": {"type": "string"}, "content": {"type": "string"}},
    "run": {},
    "any": {"x": {}}})");
  return made;
}

struct Options {
  bool inside_reasoning = false;
  bool cut = false;
};

ParsedAnswer parse(const std::string& text, Options options = {}) {
  return parse_everywhere(
      text, {.tools = tools(), .inside_reasoning = options.inside_reasoning, .cut = options.cut});
}

std::string block(const std::string& name, const std::string& parameters) {
  return "<tool_call>\n<function=" + name + ">\n" + parameters + "</function>\n</tool_call>";
}

std::string parameter(const std::string& key, const std::string& value) {
  return "<parameter=" + key + ">\n" + value + "\n</parameter>\n";
}

std::vector<ParsedCall> calls_of(const std::string& text, Options options = {}) {
  const ParsedAnswer answer = parse(text, options);
  EXPECT_EQ(answer.content, "") << text;
  EXPECT_EQ(answer.complete_calls, answer.calls.size()) << text;
  return answer.calls;
}

using Calls = std::vector<ParsedCall>;

TEST(ToolCalls, TheWireForm) {
  EXPECT_EQ(calls_of(block("read", parameter("path", "a.py") + parameter("limit", "5"))),
            (Calls{{"read", R"({"path": "a.py", "limit": 5})"}}));
  EXPECT_EQ(calls_of("<tool_call><function=read><parameter=path>a.py</parameter></function>"
                     "</tool_call>"),
            (Calls{{"read", R"({"path": "a.py"})"}}));
  EXPECT_EQ(calls_of(block("run", "")), (Calls{{"run", "{}"}}));
  EXPECT_EQ(calls_of("<tool_call>\n<function = read >\n<parameter\t= path >\nx\n</parameter>\n"
                     "</function>\n</tool_call>\n"),
            (Calls{{"read", R"({"path": "x"})"}}));
}

TEST(ToolCalls, SeveralWithTextAround) {
  const std::string three =
      block("run", "") + "\n" + block("read", parameter("path", "a")) + "\n\n" + block("run", "");
  const ParsedAnswer answer = parse("Let me look.\n\n" + three + "\n");
  EXPECT_EQ(answer.content, "Let me look.");
  EXPECT_EQ(answer.calls, (Calls{{"run", "{}"}, {"read", R"({"path": "a"})"}, {"run", "{}"}}));
  EXPECT_EQ(answer.complete_calls, 3U);

  EXPECT_EQ(parse(three + "\n\nDone. \n").content, "Done. \n");
  EXPECT_EQ(parse("A\n" + three + "\n\nDone.").content, "A\n\nDone.");
  EXPECT_EQ(parse("no call, \n").content, "no call, \n");
}

TEST(ToolCalls, OtherForms) {
  EXPECT_EQ(calls_of("<tool_call>\n{\"name\": \"read\", \"arguments\": {\"path\":\"a\\u00e9\","
                     "\"limit\":123456789012345678901234567890}}\n</tool_call>"),
            (Calls{{"read", R"({"path": "a\u00e9", "limit": 123456789012345678901234567890})"}}));
  EXPECT_EQ(calls_of("<tool_call>{\"name\":\"run\"}</tool_call>\n<tool_call>{\"arguments\":{},"
                     "\"name\":\"run\"}"),
            (Calls{{"run", "{}"}, {"run", "{}"}}));
  EXPECT_EQ(calls_of("<function=read>\n<parameter=path>\na\n</parameter>\n</function>\n"
                     "</tool_call>"),
            (Calls{{"read", R"({"path": "a"})"}}));
  EXPECT_EQ(calls_of("<function=run></function><function=run></function>"),
            (Calls{{"run", "{}"}, {"run", "{}"}}));
}

TEST(ToolCalls, WhatOnlyLooksLikeACallIsText) {
  for (const std::string text :
       {"The tag <tool_call> opens a call.", "<tool_call>\nnot a function\n</tool_call>",
        "<tool_call>", "<tool_call>\n<func", "<tool_call>{\"name\": \"nothing\"}</tool_call>",
        "<tool_call>{\"name\": \"run\", \"arguments\": [1]}</tool_call>",
        "<tool_call>{\"name\": \"run\"", "see <function=run></function>",
        "<function=unknown>\n</function>", "<tool_call>\n<function=>\n</function>\n</tool_call>",
        "in a line <tool_call> <function=run>\n</function>\n</tool_call>",
        "```\n<tool_call>\n<function=run>\n</function>\n</tool_call>\n```",
        "  ```xml\n<function=run>\n</function>\n```\nx",
        "<tool_call>\n<function=unknown>\njunk\n</function>\n</tool_call>",
        "<tool_call>\n<function=unknown>\n</function>\n"}) {
    const ParsedAnswer answer = parse(text);
    EXPECT_EQ(answer.content, text);
    EXPECT_EQ(answer.calls, Calls{}) << text;
  }
}

TEST(ToolCalls, FencesEnd) {
  const std::string call = block("run", "");
  EXPECT_EQ(parse("```\ncode\n```\n" + call).calls.size(), 1U);
  EXPECT_EQ(parse("````\n```\n" + call).calls.size(), 0U);
  EXPECT_EQ(parse("```one line```\n" + call).calls.size(), 1U);
  EXPECT_EQ(parse("so\n```\n</think>\n\n" + call, {.inside_reasoning = true}).calls.size(), 1U);
}

TEST(ToolCalls, TheModelsOwnTokenCountsAnywhere) {
  AnswerParser parser({.tools = tools(), .new_call_id = [] { return "id"; }, .call_token = 1});
  std::vector<AnswerDelta> deltas;
  const auto append = [&](TokenId id, std::string_view text) {
    TokenEvent token;
    token.token_id = id;
    for (AnswerDelta& delta : parser.append(token, text)) {
      deltas.push_back(std::move(delta));
    }
  };
  append(0, "```\nSee <tool_call>");
  append(0, "\n<function=run>\n</function>");
  append(1, "<tool_call>");
  append(0, "\n<function=run>\n</function>\n</tool_call>");
  EXPECT_EQ(parser.complete_call_count(), 1U);
  ASSERT_FALSE(deltas.empty());
  EXPECT_TRUE(deltas.front().text.starts_with("```\nSee"));
}

// Inside a fence only the model's own token opens a call, and its last byte is held back here.
TEST(ToolCalls, TheModelsOwnTokenCountsWhereAStopTextMayBeginInIt) {
  for (const std::string stop : {">>", ">\n>", "call>?"}) {
    AnswerParser parser({.stop = {stop},
                         .stop_everywhere = true,
                         .tools = tools(),
                         .new_call_id = [] { return "id"; },
                         .call_token = 1});
    parser.append({.token_id = 0}, "```\n");
    parser.append({.token_id = 1}, "<tool_call>");
    parser.append({.token_id = 0}, "\n<function=run>\n</function>\n");
    parser.append({.token_id = 2}, "</tool_call>");
    parser.finish("", false);
    EXPECT_EQ(parser.complete_call_count(), 1U) << stop;
    EXPECT_FALSE(parser.stop_text());
    const std::vector<FinishedCall> calls = parser.take_finished_calls();
    ASSERT_EQ(calls.size(), 1U);
    EXPECT_EQ(calls[0].token_ids, (std::vector<TokenId>{1, 0, 2})) << stop;
  }
}

TEST(ToolCalls, InsideReasoning) {
  const std::string call = block("read", parameter("path", "a</think>b"));
  const ParsedAnswer real = parse("I look.\n" + call, {.inside_reasoning = true});
  EXPECT_EQ(real, (ParsedAnswer{"I look.", "", {{"read", R"({"path": "a</think>b"})"}}, 1}));

  for (const std::string text :
       {"I could use <tool_call>.", "<tool_call>\n<function=nothing>",
        "<function=run>\n</function>", "```\n<tool_call>\n<function=run>"}) {
    const ParsedAnswer quoted = parse(text + "\n</think>\n\nHi", {.inside_reasoning = true});
    EXPECT_EQ(quoted, (ParsedAnswer{text, "Hi", {}, 0}));
  }
  const ParsedAnswer after = parse("so\n</think>\n\n" + call, {.inside_reasoning = true});
  EXPECT_EQ(after.reasoning, "so");
  EXPECT_EQ(after.calls.size(), 1U);
}

TEST(ToolCalls, UnknownNamesOfPerfectBlocksAreCalls) {
  EXPECT_EQ(calls_of(block("nothing", parameter("a", "1") + parameter("b", "[1,2]"))),
            (Calls{{"nothing", R"({"a": "1", "b": [1, 2]})"}}));
}

TEST(ToolCalls, ValuesMayHoldTags) {
  for (const std::string& value :
       std::vector<std::string>{"a </parameter> b",
                                "x\n</parameter>\ny",
                                "</function>",
                                "a</function>\nb",
                                "</tool_call>",
                                "line\n</tool_call>\nmore",
                                "<tool_call>\n<function=run>\ntext",
                                "<parameter=x>1</parameter> text",
                                "\n<parameter=path>\nnested\n</parameter>\ntext",
                                "<parameter=content>\nself\n</parameter>\nz",
                                "&amp; &lt;\ttab  ",
                                "\r\nCRLF\r\n\r\n",
                                "\n\nblank lines\n\n",
                                "  spaces  ",
                                "é\U0001F600",
                                "\"quotes\" \\ \x01",
                                "<",
                                "</",
                                "</param",
                                "</parameter",
                                "a<b && c</d>"}) {
    const ParsedAnswer answer =
        parse(block("write", parameter("path", "p") + parameter("content", value)));
    ASSERT_EQ(answer.calls.size(), 1U) << value;
    const auto arguments = parse_json(answer.calls[0].arguments);
    ASSERT_TRUE(arguments.has_value()) << answer.calls[0].arguments;
    EXPECT_EQ(arguments->at("content").as_string(), value);
    EXPECT_EQ(arguments->at("path").as_string(), "p");
    EXPECT_EQ(answer.content, "");
  }
}

TEST(ToolCalls, OneNewlineAtEachEdgeOfAValueIsMarkup) {
  const auto value = [](const std::string& raw) {
    return parse(block("read", "<parameter=path>" + raw + "</parameter>\n")).calls.at(0).arguments;
  };
  EXPECT_EQ(value(""), R"({"path": ""})");
  EXPECT_EQ(value("\n"), R"({"path": ""})");
  EXPECT_EQ(value("\n\n"), R"({"path": ""})");
  EXPECT_EQ(value("\n\n\n"), R"({"path": "\n"})");
  EXPECT_EQ(value(" a "), R"({"path": " a "})");
}

TEST(ToolCalls, MissingClosers) {
  const std::string a = "<parameter=path>\na\n";
  const std::string b = "<parameter=content>\nb\n";
  const std::string open = "<tool_call>\n<function=write>\n";
  const Calls both{{"write", R"({"path": "a", "content": "b"})"}};
  const std::string close = "</parameter>\n";
  const std::string end = "</function>\n</tool_call>";
  for (const std::string& text : std::vector<std::string>{
           open + a + b + close + end, open + a + close + b + end,
           open + a + close + b + close + "</tool_call>",
           open + a + close + b + close + "</function>", open + a + close + b + close,
           open + a + close + b, open + a + close + b + "</function>",
           open + a + b + "</tool_call>", open + "junk\n" + a + close + b + close + end}) {
    EXPECT_EQ(calls_of(text), both) << text;
    if (text.ends_with('>')) {
      EXPECT_EQ(calls_of(text + "\n"), both) << text;
    }
  }
  const Calls twice{both[0], both[0]};
  EXPECT_EQ(calls_of(open + a + close + b + close + open + a + close + b + close + end), twice);
  EXPECT_EQ(calls_of(open + a + close + b + close + "</function>\n" + open + a + b + end), twice);
}

TEST(ToolCalls, BrokenElementsAreDropped) {
  EXPECT_EQ(calls_of(block("read", "<parameter=\nx\n</parameter>\n" + parameter("path", "a") +
                                       "<parameter=ids: [1, 2]>\n3\n</parameter>\n" +
                                       "<parameter=ids: [1\n</parameter>\n" +
                                       parameter("limit", "1") + parameter("path", "second"))),
            (Calls{{"read", R"({"path": "a", "limit": 1})"}}));
  EXPECT_EQ(calls_of(block("read", "<parameter=\nx\n</parameter>\n")), (Calls{{"read", "{}"}}));
}

TEST(ToolCalls, ACutCallIsNotClosed) {
  const std::string text =
      block("write", parameter("path", "p") + parameter("content", "long text"));
  const std::string whole = R"({"path": "p", "content": "long text"})";
  for (std::size_t size = 0; size < text.size(); ++size) {
    const ParsedAnswer answer = parse(text.substr(0, size), {.cut = true});
    EXPECT_EQ(answer.complete_calls, 0U) << size;
    if (answer.calls.empty()) {
      EXPECT_EQ(answer.content, text.substr(0, size));
      continue;
    }
    const std::string& arguments = answer.calls[0].arguments;
    EXPECT_TRUE(whole.starts_with(arguments));
    EXPECT_EQ(parse_json(arguments).has_value(), arguments == whole) << arguments;
  }
  EXPECT_EQ(parse(text, {.cut = true}).complete_calls, 1U);
}

TEST(ToolCalls, StringsAreStreamed) {
  AnswerParser parser({.tools = tools(), .new_call_id = [] { return "id"; }});
  std::size_t sent = 0;
  const auto append = [&](const std::string& text) {
    for (const AnswerDelta& delta : parser.append(TokenEvent{}, text)) {
      sent += delta.text.size();
    }
  };
  append("<tool_call>\n<function=write>\n<parameter=content>\n");
  for (int i = 0; i < 2000; ++i) {
    const std::size_t before = sent;
    append("word ");
    EXPECT_EQ(sent, before + 5);
  }
  EXPECT_EQ(parser.complete_call_count(), 0U);
}

TEST(ToolCalls, OneCallEndsTheAnswer) {
  const ParsedAnswer answer = parse_everywhere("A\n" + block("run", "") + block("run", "") + "B",
                                               {.tools = tools(), .one_call = true});
  EXPECT_EQ(answer, (ParsedAnswer{"", "A", {{"run", "{}"}}, 1}));
}

TEST(ToolCalls, WithoutToolsAllIsText) {
  const std::string text = block("run", "") + "\n";
  EXPECT_EQ(parse_everywhere(text, {}), (ParsedAnswer{"", text, {}, 0}));
}

TEST(ToolCalls, TokensOfMarkupHaveNoText) {
  AnswerParser parser({.tools = tools(), .new_call_id = [] { return "id"; }, .call_token = 1});
  std::vector<TokenId> ids;
  const auto take = [&](const std::vector<AnswerDelta>& deltas) {
    for (const AnswerDelta& delta : deltas) {
      for (const TokenEvent& token : delta.tokens) {
        EXPECT_EQ(delta.part, AnswerPart::content);
        ids.push_back(token.token_id);
      }
    }
  };
  const std::vector<std::string> pieces{
      "Hi",           "\n\n", "<tool_call>", "\n<function=run>", "\n</function>\n",
      "</tool_call>", "\n",   "more"};
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    TokenEvent token;
    token.token_id = static_cast<TokenId>(i + 10);
    take(parser.append(token, pieces[i]));
  }
  take(parser.finish("", false));
  EXPECT_EQ(ids, (std::vector<TokenId>{10, 16, 17}));
}

TEST(ToolCalls, RandomTextsDoNotDependOnTheSplit) {
  std::mt19937 random(11);
  const std::vector<std::string> words{"<tool_call>",
                                       "</tool_call>",
                                       "<function=read>",
                                       "<function=run>",
                                       "<function=no>",
                                       "</function>",
                                       "<parameter=path>",
                                       "<parameter=limit>",
                                       "<parameter=x y>",
                                       "<parameter=",
                                       "</parameter>",
                                       "\n",
                                       "\n",
                                       "\n",
                                       " ",
                                       "a",
                                       "5",
                                       "</think>",
                                       "{\"name\":\"run\"}",
                                       "{",
                                       "}",
                                       "```",
                                       "<",
                                       ">",
                                       "</",
                                       "é"};
  for (int round = 0; round < 2000; ++round) {
    std::string text = round % 3 == 0 ? "" : "<tool_call>\n<function=read>\n<parameter=path>\n";
    for (int i = 0; i < 10; ++i) {
      text += words[random() % words.size()];
    }
    parse(text, {.inside_reasoning = round % 4 == 0, .cut = round % 5 == 0});
  }
}

TEST(ToolCallParsing, TagsThatTurnOutToBeTextAreCounted) {
  const auto literal = [](const std::string& text) {
    AnswerSplitter splitter(false, make_tools(R"({"read":{"path":{"type":"string"}}})"));
    for (const char byte : text) {
      splitter.append(std::string_view(&byte, 1));
    }
    splitter.finish(false);
    return splitter.literal_call_count();
  };
  EXPECT_EQ(literal("plain"), 0U);
  EXPECT_EQ(literal("a <tool_call> inside a line"), 0U) << "cannot begin a call";
  EXPECT_EQ(literal("<tool_call>\nis how a call begins"), 1U);
  EXPECT_EQ(literal("<tool_call>{\"name\": \"walk\"}</tool_call>\n<tool_call>"), 2U);
  EXPECT_EQ(literal("<tool_call>\n<function=read>\n</function>\n</tool_call>"), 0U);
  EXPECT_EQ(literal("<tool_call>\n<function=walk> and more"), 1U);
}

}  // namespace
}  // namespace sluice
