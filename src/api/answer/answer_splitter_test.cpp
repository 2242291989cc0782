// Reasoning and content of answers without tools: every text is also given split at every byte, and
// byte by byte, and must come out the same.
#include "api/answer/answer_splitter.h"

#include <gtest/gtest.h>

#include <random>

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

Parts split(const std::vector<std::string>& pieces, bool inside) {
  AnswerSplitter parser(inside, nullptr);
  Parts parts;
  std::string input;
  const auto take = [&](const std::vector<AnswerSegment>& segments) {
    for (const AnswerSegment& segment : segments) {
      EXPECT_FALSE(segment.text.empty());
      EXPECT_EQ(input.substr(segment.begin, segment.text.size()), segment.text);
      (segment.part == AnswerPart::reasoning ? parts.reasoning : parts.content) += segment.text;
    }
  };
  for (const std::string& piece : pieces) {
    input += piece;
    take(parser.append(piece));
  }
  take(parser.finish(false));
  return parts;
}

Parts split_everywhere(const std::string& text, bool inside) {
  const Parts whole = split({text}, inside);
  std::vector<std::string> bytes;
  for (std::size_t at = 0; at <= text.size(); ++at) {
    EXPECT_EQ(split({text.substr(0, at), text.substr(at)}, inside), whole) << at;
    if (at < text.size()) {
      bytes.push_back(text.substr(at, 1));
    }
  }
  EXPECT_EQ(split(bytes, inside), whole);
  return whole;
}

TEST(AnswerSplitter, EndsAtTheFirstClosingTag) {
  EXPECT_EQ(split_everywhere("so\n</think>\n\nHi", true), (Parts{"so", "Hi"}));
  EXPECT_EQ(split_everywhere("so</think>Hi", true), (Parts{"so", "Hi"}));
  EXPECT_EQ(split_everywhere("a\n\n</think>\n\n\nb", true), (Parts{"a\n", "\nb"}));
  EXPECT_EQ(split_everywhere("</think>\n\nHi", true), (Parts{"", "Hi"}));
  EXPECT_EQ(split_everywhere("\n</think>", true), (Parts{"", ""}));
}

TEST(AnswerSplitter, RepeatedAndStrayTagsAreDropped) {
  EXPECT_EQ(split_everywhere("<think>\nso\n</think>\n\nHi", true), (Parts{"so", "Hi"}));
  EXPECT_EQ(split_everywhere("\n<think>so</think>a</think>b", true), (Parts{"so", "ab"}));
  EXPECT_EQ(split_everywhere("so <think> x</think>y", true), (Parts{"so <think> x", "y"}));
  EXPECT_EQ(split_everywhere("</think></think>x", true), (Parts{"", "x"}));
}

TEST(AnswerSplitter, WithoutAClosingTagAllIsReasoning) {
  EXPECT_EQ(split_everywhere("never ends </thin", true), (Parts{"never ends </thin", ""}));
  EXPECT_EQ(split_everywhere("line\n", true), (Parts{"line", ""}));
  EXPECT_EQ(split_everywhere("<thi", true), (Parts{"<thi", ""}));
  EXPECT_EQ(split_everywhere("", true), (Parts{"", ""}));
}

TEST(AnswerSplitter, StartingInContentAllIsContent) {
  const std::string text = "\n<think>x</think>\n\ny\n";
  EXPECT_EQ(split_everywhere(text, false), (Parts{"", text}));
}

TEST(AnswerSplitter, RandomTextsDoNotDependOnTheSplit) {
  std::mt19937 random(7);
  const std::vector<std::string> words{"<think>", "</think>", "\n",      "<", "/", "</",
                                       "think>",  "a",        "</think", ">", "é"};
  for (int round = 0; round < 300; ++round) {
    std::string text;
    for (int i = 0; i < 8; ++i) {
      text += words[random() % words.size()];
    }
    split_everywhere(text, round % 4 != 0);
  }
}

}  // namespace
}  // namespace sluice
