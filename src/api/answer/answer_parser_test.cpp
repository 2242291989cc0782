// Stop texts, and the parser of whole answers: every text is also given split at every byte, and
// byte by byte, and must come out the same.
#include "api/answer/answer_parser.h"

#include <gtest/gtest.h>

#include <random>

#include "api/answer/test_calls.h"

namespace sluice {
namespace {

struct Parts {
  std::string reasoning;
  std::string content;
  bool operator==(const Parts&) const = default;
};

std::ostream& operator<<(std::ostream& out, const Parts& parts) {
  return out << "[" << parts.reasoning << "|" << parts.content << "]";
}

struct Stopped {
  std::string text;
  std::optional<std::string> matched;
  bool operator==(const Stopped&) const = default;
};

Stopped stop(const std::vector<std::string>& pieces, std::vector<std::string> stops, bool keep) {
  StopMatcher matcher(std::move(stops), keep);
  Stopped result;
  for (const std::string& piece : pieces) {
    result.text += matcher.append(piece);
  }
  result.text += matcher.finish();
  result.matched = matcher.matched();
  return result;
}

Stopped stop_everywhere(const std::string& text, const std::vector<std::string>& stops,
                        bool keep = false) {
  const Stopped whole = stop({text}, stops, keep);
  std::vector<std::string> bytes;
  for (std::size_t at = 0; at < text.size(); ++at) {
    EXPECT_EQ(stop({text.substr(0, at), text.substr(at)}, stops, keep), whole) << text << at;
    bytes.push_back(text.substr(at, 1));
  }
  EXPECT_EQ(stop(bytes, stops, keep), whole) << text;
  return whole;
}

TEST(StopMatcher, CutsExactly) {
  EXPECT_EQ(stop_everywhere("one STOP two", {"STOP"}), (Stopped{"one ", "STOP"}));
  EXPECT_EQ(stop_everywhere("one STOP two", {"STOP"}, true), (Stopped{"one STOP", "STOP"}));
  EXPECT_EQ(stop_everywhere("aaab", {"aab"}), (Stopped{"a", "aab"}));
  EXPECT_EQ(stop_everywhere("one STO", {"STOP"}), (Stopped{"one STO", std::nullopt}));
}

TEST(StopMatcher, TheFirstEndWinsThenTheLongest) {
  EXPECT_EQ(stop_everywhere("xabcd", {"abcd", "bc"}), (Stopped{"xa", "bc"}));
  EXPECT_EQ(stop_everywhere("xabc", {"c", "abc", "bc"}), (Stopped{"x", "abc"}));
  EXPECT_EQ(stop_everywhere("xab", {"ab", "abc"}), (Stopped{"x", "ab"}));
}

TEST(StopMatcher, EmptyStopsAreDropped) {
  EXPECT_EQ(stop_everywhere("text", {"", ""}), (Stopped{"text", std::nullopt}));
}

TEST(StopMatcher, RandomTextsDoNotDependOnTheSplit) {
  std::mt19937 random(3);
  for (int round = 0; round < 500; ++round) {
    const auto make = [&](std::size_t size) {
      std::string text;
      for (std::size_t i = 0; i < size; ++i) {
        text += static_cast<char>('a' + random() % 3);
      }
      return text;
    };
    stop_everywhere(make(24), {make(3 + random() % 4), make(4), make(5)}, round % 2 == 0);
  }
}

// A token per piece, with ids 0, 1, 2, ...
struct Answer {
  Parts parts;
  std::vector<TokenId> reasoning_tokens;
  std::vector<TokenId> content_tokens;
};

Answer parse(AnswerParser& parser, const std::vector<std::string>& pieces,
             const std::string& tail = {}) {
  Answer answer;
  const auto take = [&](const std::vector<AnswerDelta>& deltas) {
    for (const AnswerDelta& delta : deltas) {
      const bool reasoning = delta.part == AnswerPart::reasoning;
      EXPECT_FALSE(delta.text.empty());
      (reasoning ? answer.parts.reasoning : answer.parts.content) += delta.text;
      for (const TokenEvent& token : delta.tokens) {
        (reasoning ? answer.reasoning_tokens : answer.content_tokens).push_back(token.token_id);
      }
    }
  };
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    TokenEvent token;
    token.token_id = static_cast<TokenId>(i);
    take(parser.append(token, pieces[i]));
  }
  take(parser.finish(tail, false));
  return answer;
}

using Ids = std::vector<TokenId>;

TEST(AnswerParser, TokensStayWithTheirText) {
  AnswerParser parser({.starts_inside_reasoning = true});
  const Answer answer = parse(parser, {"so", " be", "\n", "</think>", "\n\n", "Hi", " you"});
  EXPECT_EQ(answer.parts, (Parts{"so be", "Hi you"}));
  EXPECT_EQ(answer.reasoning_tokens, (Ids{0, 1}));
  EXPECT_EQ(answer.content_tokens, (Ids{5, 6}));
  EXPECT_EQ(parser.token_count(), 7);
  EXPECT_EQ(parser.reasoning_token_count(), 4);
}

TEST(AnswerParser, ReasoningIsCountedToItsEndWhateverIsHeldBack) {
  const std::vector<std::string> pieces = {"so", "\n", "</think>", "\n\n", "Hi", " you"};
  // Each of these may begin in the tag, none of them comes.
  for (const std::string stop : {"</think>\n\nHo", "k>\n\nHi!", "\n</think>\n\nHi you!"}) {
    AnswerParser parser({.starts_inside_reasoning = true, .stop = {stop}, .stop_everywhere = true});
    EXPECT_EQ(parse(parser, pieces).parts, (Parts{"so", "Hi you"})) << stop;
    EXPECT_EQ(parser.reasoning_token_count(), 3) << stop;
  }
  // A call ends the reasoning, but what opens it is seen to be one only later.
  AnswerParser calling({.starts_inside_reasoning = true,
                        .tools = make_tools(R"({"run":{}})"),
                        .new_call_id = [] { return std::string("call_1"); }});
  for (const char* piece :
       {"so", "\n", "<tool_call>", "\n", "<function", "=run", ">\n", "</function>"}) {
    calling.append({}, piece);
  }
  EXPECT_EQ(calling.call_count(), 1U);
  EXPECT_EQ(calling.reasoning_token_count(), 2);
  AnswerParser cut({.starts_inside_reasoning = true, .stop = {"e!"}, .stop_everywhere = true});
  parse(cut, {"so", " be"});
  EXPECT_EQ(cut.reasoning_token_count(), 2);
  AnswerParser stopped({.starts_inside_reasoning = true, .stop = {"be"}, .stop_everywhere = true});
  parse(stopped, {"so", " be", "</think>"});
  EXPECT_EQ(stopped.reasoning_token_count(), 2);
}

TEST(AnswerParser, TokensOfAnUnfinishedCharacterGoWithIt) {
  AnswerParser parser({});
  const Answer answer = parse(parser, {"a", "", "é", "", ""}, "\uFFFD");
  EXPECT_EQ(answer.parts.content, "aé\uFFFD");
  EXPECT_EQ(answer.content_tokens, (Ids{0, 1, 2, 3, 4}));
}

TEST(AnswerParser, StopTextsCutContentAndItsTokens) {
  AnswerParser parser({.stop = {"END"}});
  const Answer answer = parse(parser, {"a", " E", "ND", "b"});
  EXPECT_EQ(answer.parts.content, "a ");
  EXPECT_EQ(answer.content_tokens, (Ids{0, 1}));
  EXPECT_EQ(parser.stop_text(), "END");
  EXPECT_EQ(parser.token_count(), 3);
}

TEST(AnswerParser, StopTextsAreNotLookedForInReasoning) {
  const std::vector<std::string> pieces{"END", "</think>", "x", "END", "y"};
  AnswerParser content_only({.starts_inside_reasoning = true, .stop = {"END"}});
  EXPECT_EQ(parse(content_only, pieces).parts, (Parts{"END", "x"}));
  AnswerParser everywhere(
      {.starts_inside_reasoning = true, .stop = {"END"}, .stop_everywhere = true});
  EXPECT_EQ(parse(everywhere, pieces).parts, (Parts{"", ""}));
  EXPECT_EQ(everywhere.stop_text(), "END");
}

TEST(AnswerParser, TokensWithoutTextAtTheEndAreToldWhereAllAreWanted) {
  for (const bool all : {false, true}) {
    AnswerParser parser({.all_tokens = all});
    EXPECT_EQ(parser.append(TokenEvent{.token_id = 1}, "a").size(), 1U);
    EXPECT_TRUE(parser.append(TokenEvent{.token_id = 2}, "").empty());
    EXPECT_TRUE(parser.append(TokenEvent{.token_id = 3}, "").empty());
    const std::vector<AnswerDelta> rest = parser.finish("", true);
    ASSERT_EQ(rest.size(), all ? 1U : 0U);
    if (all) {
      EXPECT_EQ(rest[0].text, "");
      ASSERT_EQ(rest[0].tokens.size(), 2U);
      EXPECT_EQ(rest[0].tokens[1].token_id, 3);
    }
  }
}

TEST(AnswerParser, TokensWithoutTextAtTheEndBelongToTheirPart) {
  const auto rest_of = [](const std::vector<std::string>& pieces) {
    AnswerParser parser({.starts_inside_reasoning = true, .all_tokens = true});
    TokenId id = 0;
    for (const std::string& piece : pieces) {
      parser.append(TokenEvent{.token_id = id++}, piece);
    }
    return parser.finish("", true);
  };
  const std::vector<AnswerDelta> reasoning = rest_of({"so", ""});
  ASSERT_EQ(reasoning.size(), 1U);
  EXPECT_EQ(reasoning[0].part, AnswerPart::reasoning);
  EXPECT_EQ(reasoning[0].tokens.size(), 1U);
  const std::vector<AnswerDelta> content = rest_of({"so", "</think>", "", ""});
  ASSERT_EQ(content.size(), 1U);
  EXPECT_EQ(content[0].part, AnswerPart::content);
  ASSERT_EQ(content[0].tokens.size(), 2U);
  EXPECT_EQ(content[0].tokens[0].token_id, 2);
  EXPECT_TRUE(rest_of({"so", "</think>"}).empty()) << "a tag is no text";
}

TEST(AnswerParser, ADroppedTagMakesNoStopTextInContent) {
  const std::vector<std::vector<std::string>> splits{
      {"</think>oneEN</think>D two"},
      {"</think>one", "E", "N</th", "ink>", "D", " two"},
  };
  for (const std::vector<std::string>& pieces : splits) {
    for (const bool everywhere : {false, true}) {
      AnswerParser parser(
          {.starts_inside_reasoning = true, .stop = {"END"}, .stop_everywhere = everywhere});
      EXPECT_EQ(parse(parser, pieces).parts, (Parts{"", "one"}));
      EXPECT_EQ(parser.stop_text(), "END");
    }
  }
}

TEST(AnswerParser, AStopTextLetsOutWhatWasHeldBackForAnother) {
  AnswerParser parser(
      {.starts_inside_reasoning = true, .stop = {"END", "xEN?"}, .stop_everywhere = true});
  EXPECT_EQ(parse(parser, {"</think>", "xEN", "END"}).parts.content, "xEN");
}

TEST(AnswerParser, StopTextMayBeKept) {
  AnswerParser parser({.stop = {"END"}, .keep_stop_text = true});
  EXPECT_EQ(parse(parser, {"aEN", "Db"}).parts.content, "aEND");
}

TEST(AnswerParser, HeldBackTextComesOutAtTheEnd) {
  AnswerParser parser({.stop = {"END"}});
  const Answer answer = parse(parser, {"a", "EN"});
  EXPECT_EQ(answer.parts.content, "aEN");
  EXPECT_EQ(answer.content_tokens, (Ids{0, 1}));
}

}  // namespace
}  // namespace sluice
