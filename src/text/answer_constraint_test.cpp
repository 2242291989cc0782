// The life of an answer under every kind of constraint, token by token, with random choices.
#include "text/answer_constraint.h"

#include <algorithm>
#include <random>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "text/testdata/temporary_directory.h"

namespace sluice {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr std::string_view kSentence =
    "Considering the limited time by the user, I have to give the solution based on the thinking "
    "directly now.";

class AnswerConstraintTest : public ::testing::Test {
 protected:
  static const Tokenizer& tokenizer() {
    static const Tokenizer loaded = Tokenizer::load(test_tokenizer_directory()).value();
    return loaded;
  }
  static std::shared_ptr<const ThinkingTokens> thinking() {
    static const auto tokens =
        std::make_shared<const ThinkingTokens>(ThinkingTokens::of(tokenizer()).value());
    return tokens;
  }
  static std::unique_ptr<TokenConstraint> start(AnswerConstraintOptions options) {
    return make_answer_constraint(std::move(options), tokenizer(), thinking())->start().value();
  }
  std::shared_ptr<const CompiledGrammar> grammar(const std::string& regex) {
    return cache_.compile({.kind = GrammarKind::regex, .text = regex}).value();
  }
  // Calls of `read`, whose only value is of small letters.
  AnswerConstraintOptions with_calls(AnswerConstraintOptions options) {
    constexpr std::string_view kCalls =
        "start: call (\"\\n\" call)*\ncall: <tool_call> BODY </tool_call>\n"
        "BODY: /[ \\t\\r\\n]{0,8}<function=read>[a-z]*<\\/function>/\n";
    options.call_token = tokenizer().token_id("<tool_call>");
    options.call_end_token = tokenizer().token_id("</tool_call>");
    options.calls = cache_.compile({.kind = GrammarKind::lark, .text = kCalls}).value();
    options.stop_ids = {eos_};
    return options;
  }
  static std::vector<TokenId> encode(const std::string& text) {
    return tokenizer().encode(text, ControlTokens::parse).value();
  }

  // As ordinary text, control tokens included.
  static std::vector<TokenId> spell(const std::string& text) {
    return tokenizer().encode(text, ControlTokens::literal).value();
  }

  // The ids that may come next; empty optional: all of them.
  static std::optional<std::vector<TokenId>> allowed(TokenConstraint& constraint) {
    std::vector<std::uint32_t> mask(static_cast<std::size_t>(tokenizer().vocab_size() + 31) / 32,
                                    ~std::uint32_t{0});
    const Result<bool> narrowed = constraint.narrow(mask);
    EXPECT_TRUE(narrowed) << narrowed.error().message;
    const bool all = std::ranges::all_of(mask, [](std::uint32_t word) { return ~word == 0; });
    if (!*narrowed) {
      EXPECT_TRUE(all) << "narrowed without saying so";
      return std::nullopt;
    }
    std::vector<TokenId> ids;
    for (TokenId id = 0; id < tokenizer().vocab_size(); ++id) {
      if (((mask[static_cast<std::size_t>(id) / 32] >> (id % 32)) & 1U) != 0) {
        ids.push_back(id);
      }
    }
    return ids;
  }

  static bool may_come(TokenConstraint& constraint, TokenId id) {
    const auto ids = allowed(constraint);
    return !ids || std::ranges::binary_search(*ids, id);
  }

  static void accept(TokenConstraint& constraint, const std::string& text) {
    for (const TokenId id : encode(text)) {
      EXPECT_TRUE(may_come(constraint, id)) << text << ": " << tokenizer().token_bytes(id);
      ASSERT_TRUE(constraint.accept(id));
    }
  }

  // What is forced from here on, as text.
  static std::string forced_text(TokenConstraint& constraint) {
    std::string text;
    while (true) {
      const auto ids = allowed(constraint);
      if (!ids || ids->size() != 1) {
        return text;
      }
      text += tokenizer().token_bytes(ids->front());
      EXPECT_TRUE(constraint.accept(ids->front()));
    }
  }

  GrammarCache cache_{tokenizer(), {}};
  const TokenId eos_ = *tokenizer().eos_token_id();
};

TEST_F(AnswerConstraintTest, NothingToKeepTo) {
  EXPECT_FALSE(AnswerConstraintOptions{}.constrains());
  AnswerConstraintOptions options{.starts_inside_reasoning = true, .stop_ids = {eos_}};
  EXPECT_FALSE(options.constrains());
  const auto constraint = start(options);
  EXPECT_FALSE(allowed(*constraint));
  accept(*constraint, "river</think>\n\ngate");
  EXPECT_FALSE(allowed(*constraint));
  EXPECT_FALSE(*constraint->is_finished());
}

TEST_F(AnswerConstraintTest, AGrammarBeginsAfterTheReasoning) {
  const auto constraint =
      start({.starts_inside_reasoning = true, .grammar = grammar("[0-9]{2}"), .stop_ids = {eos_}});
  accept(*constraint, "free { [ \" reasoning <tool_call> river");
  EXPECT_FALSE(may_come(*constraint, eos_)) << "the content is still to come";
  EXPECT_FALSE(*constraint->is_finished());
  accept(*constraint, "</think>");
  EXPECT_EQ(forced_text(*constraint), "\n\n");
  EXPECT_FALSE(may_come(*constraint, encode("a")[0]));
  accept(*constraint, "42");
  EXPECT_TRUE(*constraint->is_finished());
  EXPECT_THAT(*allowed(*constraint), ElementsAre(eos_));
}

TEST_F(AnswerConstraintTest, WithoutReasoningAGrammarBeginsAtOnce) {
  const auto constraint = start({.grammar = grammar("ab")});
  EXPECT_FALSE(may_come(*constraint, encode("b")[0]));
  accept(*constraint, "ab");
  EXPECT_TRUE(*constraint->is_finished());
}

TEST_F(AnswerConstraintTest, ACallMayStandForTheContent) {
  const TokenId call = *tokenizer().token_id("<tool_call>");
  const AnswerConstraintOptions options{.starts_inside_reasoning = true,
                                        .grammar = grammar("ab"),
                                        .call_token = call,
                                        .stop_ids = {eos_}};
  const auto constraint = start(options);
  accept(*constraint, "hm</think>\n\n");
  EXPECT_THAT(*allowed(*constraint), testing::Contains(call));
  EXPECT_FALSE(may_come(*constraint, encode("x")[0]));
  ASSERT_TRUE(constraint->accept(call));
  EXPECT_FALSE(allowed(*constraint));
  EXPECT_FALSE(*constraint->is_finished());

  const auto content = start(options);
  accept(*content, "hm</think>\n\na");
  EXPECT_FALSE(may_come(*content, call)) << "the content has begun";

  const auto early = start(options);
  accept(*early, "hm<tool_call>");
  EXPECT_TRUE(may_come(*early, eos_)) << "a call inside the reasoning ends it";
}

TEST_F(AnswerConstraintTest, AGrammarOfCallsSaysWhereTheyStand) {
  const TokenId call = *tokenizer().token_id("<tool_call>");
  const auto constraint = start({.starts_inside_reasoning = true,
                                 .grammar = grammar("ab"),
                                 .call_token = call,
                                 .grammar_has_calls = true,
                                 .stop_ids = {eos_}});
  EXPECT_FALSE(may_come(*constraint, call)) << "a call in the reasoning would be one";
  accept(*constraint, "hm</think>\n\n");
  EXPECT_FALSE(may_come(*constraint, call)) << "only where the grammar has it";
  EXPECT_TRUE(may_come(*constraint, encode("a")[0]));
}

TEST_F(AnswerConstraintTest, ACallOfItsOwnIsFreeUntilItIsOne) {
  const auto constraint = start(with_calls({}));
  for (int i = 0; i < 2; ++i) {
    accept(*constraint, "river");
    EXPECT_FALSE(allowed(*constraint)) << "no mask without a call";
    accept(*constraint, "<tool_call>\n");
    EXPECT_FALSE(allowed(*constraint)) << "it may be spoken of";
    accept(*constraint, "<function");
    EXPECT_EQ(forced_text(*constraint), "=read>");
    EXPECT_FALSE(may_come(*constraint, eos_)) << "a call must be closed";
    EXPECT_FALSE(may_come(*constraint, encode("0")[0]));
    accept(*constraint, "gate</function>");
    EXPECT_FALSE(*constraint->is_finished());
    EXPECT_EQ(forced_text(*constraint), "</tool_call>");
    EXPECT_FALSE(allowed(*constraint)) << "what follows a call is free";
    EXPECT_FALSE(*constraint->is_finished());
  }
}

TEST_F(AnswerConstraintTest, ACallIsOneInWhateverTokensItsTagIsSpelled) {
  const auto constraint = start(with_calls({}));
  accept(*constraint, "<tool_call>");
  for (const char byte : std::string_view("<function=re")) {
    const auto id = tokenizer().token_id(std::string(1, byte));
    ASSERT_TRUE(id) << byte;
    ASSERT_TRUE(constraint->accept(*id)) << byte;
  }
  EXPECT_EQ(forced_text(*constraint), "ad>");
  EXPECT_FALSE(may_come(*constraint, eos_)) << "a call must be closed";
}

TEST_F(AnswerConstraintTest, ATagThatBeginsNoCallIsText) {
  for (const char* text : {"<tool_call> opens a call", "<tool_call><tool_call></tool_call>",
                           "<tool_call>{\"name\": \"read\"}</tool_call>", "<tool_call></think>"}) {
    const auto constraint = start(with_calls({.starts_inside_reasoning = true}));
    accept(*constraint, text);
    EXPECT_FALSE(allowed(*constraint)) << text;
  }
}

TEST_F(AnswerConstraintTest, ATagInTheReasoningLeavesTheContentItsGrammar) {
  const auto constraint =
      start(with_calls({.starts_inside_reasoning = true, .grammar = grammar("ab")}));
  accept(*constraint, "no <tool_call> here");
  EXPECT_FALSE(may_come(*constraint, eos_));
  accept(*constraint, "</think>");
  EXPECT_EQ(forced_text(*constraint), "\n\n");
  EXPECT_FALSE(may_come(*constraint, encode("x")[0]));
  accept(*constraint, "ab");
  EXPECT_TRUE(*constraint->is_finished());
}

TEST_F(AnswerConstraintTest, CallsThatStandForTheContentAreAllOfIt) {
  for (const char* before : {"hm</think>\n\n", "hm"}) {
    const auto constraint =
        start(with_calls({.starts_inside_reasoning = true, .grammar = grammar("ab")}));
    accept(*constraint, std::string(before) + "<tool_call><function");
    EXPECT_EQ(forced_text(*constraint), "=read>");
    accept(*constraint, "gate</function></tool_call>");
    EXPECT_TRUE(may_come(*constraint, eos_));
    EXPECT_FALSE(may_come(*constraint, encode("a")[0]));
    accept(*constraint, "\n<tool_call>");
    EXPECT_FALSE(may_come(*constraint, eos_));
  }
}

TEST_F(AnswerConstraintTest, ABudgetThatEndsInsideATagEndsTheWatch) {
  const auto constraint =
      start(with_calls({.starts_inside_reasoning = true, .reasoning_tokens_max = 2}));
  accept(*constraint, "a<tool_call>");
  EXPECT_EQ(forced_text(*constraint), "\n\n" + std::string(kSentence) + "\n</think>\n\n");
  EXPECT_FALSE(allowed(*constraint));
}

TEST_F(AnswerConstraintTest, EverySequenceStartsAnew) {
  const auto factory =
      make_answer_constraint({.grammar = grammar("ab|cd")}, tokenizer(), thinking());
  const auto first = factory->start().value();
  accept(*first, "a");
  const auto second = factory->start().value();
  accept(*second, "cd");
  accept(*first, "b");
  EXPECT_TRUE(*first->is_finished());
  EXPECT_TRUE(*second->is_finished());
}

TEST_F(AnswerConstraintTest, AClosingTagSpelledInOrdinaryTokensEndsTheReasoningToo) {
  const auto constraint = start({.starts_inside_reasoning = true, .grammar = grammar("ab")});
  for (const char* piece : {"x", "</", "thin"}) {
    accept(*constraint, piece);
  }
  for (const TokenId id : spell("k>")) {
    ASSERT_TRUE(constraint->accept(id));
  }
  EXPECT_THAT(forced_text(*constraint), testing::StartsWith("\n\nab"));
}

TEST_F(AnswerConstraintTest, NoTokenIsHalfClosingTagAndHalfContent) {
  // Any token that begins with the rest of a tag and goes on.
  for (const TagOverrun& overrun : thinking()->tag_overruns) {
    const std::string said(kThinkingCloseTag.substr(0, overrun.tag_bytes_before));
    for (const bool constrained : {false, true}) {
      AnswerConstraintOptions options{.starts_inside_reasoning = true};
      options.grammar = constrained ? grammar("ab") : nullptr;
      const auto constraint = start(options);
      EXPECT_EQ(may_come(*constraint, overrun.id), !constrained || !said.empty());
      for (const TokenId id : spell("x" + said)) {
        ASSERT_TRUE(constraint->accept(id));
      }
      EXPECT_EQ(may_come(*constraint, overrun.id), !constrained);
    }
  }
}

TEST_F(AnswerConstraintTest, ASpentBudgetClosesTheReasoning) {
  for (const bool constrained : {false, true}) {
    for (const std::int64_t budget : {0, 1, 5, 20}) {
      AnswerConstraintOptions options{.starts_inside_reasoning = true,
                                      .reasoning_tokens_max = budget};
      options.grammar = constrained ? grammar("[0-9]") : nullptr;
      const auto constraint = start(options);
      for (std::int64_t i = 0; i < budget; ++i) {
        EXPECT_TRUE(may_come(*constraint, encode("a")[0])) << i;
        ASSERT_TRUE(constraint->accept(encode("a")[0]));
      }
      const std::string closing = forced_text(*constraint);
      EXPECT_EQ(closing, "\n\n" + std::string(kSentence) + "\n</think>\n\n");
      EXPECT_EQ(may_come(*constraint, encode("a")[0]), !constrained);
      EXPECT_FALSE(*constraint->is_finished());
    }
  }
}

TEST_F(AnswerConstraintTest, ReasoningThatEndsInTimeIsNotTouched) {
  const auto constraint = start({.starts_inside_reasoning = true, .reasoning_tokens_max = 3});
  accept(*constraint, "ab</think>");
  for (int i = 0; i < 20; ++i) {
    EXPECT_FALSE(allowed(*constraint));
    ASSERT_TRUE(constraint->accept(encode("a")[0]));
  }
}

TEST_F(AnswerConstraintTest, ABudgetEndsBetweenCharacters) {
  std::mt19937 random(7);
  for (int round = 0; round < 50; ++round) {
    const auto constraint = start({.starts_inside_reasoning = true, .reasoning_tokens_max = 8});
    const std::vector<TokenId> emoji =  // one token per byte
        spell("\xF0\x9F\xA6\x86");
    ASSERT_GT(emoji.size(), 1U);
    std::string text;
    for (int count = 0; count < 8;) {
      const bool start_one = random() % 2 == 0 && may_come(*constraint, emoji[0]);
      for (const TokenId id : start_one ? emoji : encode("a")) {
        ASSERT_LT(count, 8);
        text += tokenizer().token_bytes(id);
        ASSERT_TRUE(constraint->accept(id));
        ++count;
      }
    }
    EXPECT_FALSE(ends_inside_character(text));
    EXPECT_THAT(forced_text(*constraint), HasSubstr(kSentence));
  }
}

TEST_F(AnswerConstraintTest, NoEndBeforeTheLeastNumberOfTokens) {
  const auto constraint = start({.tokens_min = 3, .stop_ids = {eos_, 600}});
  for (int i = 0; i < 3; ++i) {
    EXPECT_FALSE(may_come(*constraint, eos_));
    EXPECT_FALSE(may_come(*constraint, 600));
    ASSERT_TRUE(constraint->accept(encode("a")[0]));
  }
  EXPECT_FALSE(allowed(*constraint));
}

TEST_F(AnswerConstraintTest, AFinishedGrammarEndsBeforeTheLeastNumberOfTokens) {
  const auto constraint = start({.grammar = grammar("a"), .tokens_min = 30, .stop_ids = {eos_}});
  accept(*constraint, "a");
  EXPECT_THAT(*allowed(*constraint), ElementsAre(eos_));
  EXPECT_TRUE(*constraint->is_finished());
}

TEST_F(AnswerConstraintTest, BadWordsNeverOccur) {
  const std::vector<TokenId> word = spell("xyz");
  ASSERT_GE(word.size(), 2U);
  const auto constraint = start({.bad_words = {word, {5}}});
  EXPECT_FALSE(may_come(*constraint, 5));
  for (std::size_t i = 0; i + 1 < word.size(); ++i) {
    EXPECT_TRUE(may_come(*constraint, word[i]));
    ASSERT_TRUE(constraint->accept(word[i]));
  }
  EXPECT_FALSE(may_come(*constraint, word.back()));
  ASSERT_TRUE(constraint->accept(encode("a")[0]));
  EXPECT_TRUE(may_come(*constraint, word.back()));
}

TEST_F(AnswerConstraintTest, OnlyAllowedIdsAndForcedOnesCome) {
  const auto constraint = start(
      {.starts_inside_reasoning = true, .reasoning_tokens_max = 2, .allowed_ids = {7, 40, 3}});
  EXPECT_THAT(*allowed(*constraint), ElementsAre(3, 7, 40));
  ASSERT_TRUE(constraint->accept(7));
  ASSERT_TRUE(constraint->accept(40));
  EXPECT_THAT(forced_text(*constraint), HasSubstr(kSentence));
  EXPECT_THAT(*allowed(*constraint), ElementsAre(3, 7, 40));
}

TEST_F(AnswerConstraintTest, AShorterVocabularyIsNoFault) {
  const auto constraint = start({.grammar = grammar("[a-z]"), .allowed_ids = {600}});
  std::vector<std::uint32_t> mask(2, ~std::uint32_t{0});
  EXPECT_TRUE(constraint->narrow(mask).value());
}

TEST(ThinkingTokens, KnowsWhereCharactersEnd) {
  for (const char* cut : {"\xC3", "a\xE2\x82", "\xF0\x9F\xA6", "\xF0", "\xC3\xA9\xE2"}) {
    EXPECT_TRUE(ends_inside_character(cut)) << cut;
  }
  for (const char* whole : {"", "a", "\xC3\xA9", "\xE2\x82\xAC", "\xF0\x9F\xA6\x86", "\x80",
                            "\x80\x80\x80\x80", "\xC3\xA9 "}) {
    EXPECT_FALSE(ends_inside_character(whole)) << whole;
  }
}

}  // namespace
}  // namespace sluice
