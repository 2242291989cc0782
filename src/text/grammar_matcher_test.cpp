#include "text/grammar_matcher.h"

#include <random>
#include <string>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/json/parse.hpp>

#include "text/testdata/temporary_directory.h"

namespace sluice {
namespace {

using testing::HasSubstr;

constexpr std::int32_t kEmbeddingRows = 704;  // more than the tokenizer's 633 ids
constexpr std::int32_t kImEnd = 602;

class GrammarMatcherTest : public testing::Test {
 protected:
  void SetUp() override {
    Result<Tokenizer> tokenizer = Tokenizer::load(test_tokenizer_directory());
    ASSERT_TRUE(tokenizer) << tokenizer.error().message;
    tokenizer_ = std::move(*tokenizer);
  }

  Result<GrammarMatcher> create(GrammarKind kind, std::string_view text) const {
    return GrammarMatcher::create({kind, text}, *tokenizer_,
                                  {.vocab_size = kEmbeddingRows, .stop_ids = {}});
  }

  static std::vector<std::int32_t> allowed(GrammarMatcher& matcher) {
    std::vector<std::uint32_t> mask(matcher.mask_words());
    const Result<void> result = matcher.allowed_mask(mask);
    EXPECT_TRUE(result) << result.error().message;
    std::vector<std::int32_t> ids;
    for (std::int32_t id = 0; id < kEmbeddingRows; ++id) {
      if (((mask[static_cast<std::size_t>(id) / 32] >> (id % 32)) & 1U) != 0) {
        ids.push_back(id);
      }
    }
    return ids;
  }

  // Generates with a random choice among the allowed tokens until the grammar ends.
  std::string random_text(GrammarMatcher& matcher, unsigned seed, std::size_t tokens_max) const {
    std::mt19937 random(seed);
    std::string text;
    for (std::size_t token = 0; token < tokens_max; ++token) {
      const std::vector<std::int32_t> ids = allowed(matcher);
      EXPECT_FALSE(ids.empty()) << text;
      if (ids.empty()) {
        break;
      }
      // Ends when it may; otherwise leans to quotes and brackets, which end things.
      std::int32_t id = ids[random() % ids.size()];
      if (ids.back() == kImEnd) {
        id = kImEnd;
      } else {
        for (const std::int32_t candidate : ids) {
          const std::string_view bytes = tokenizer_->token_bytes(candidate);
          if (bytes == "\"" || bytes == "}" || bytes == "]") {
            id = candidate;
          }
        }
      }
      EXPECT_TRUE(matcher.accept(id));
      if (id == kImEnd) {
        EXPECT_TRUE(*matcher.is_finished());
        EXPECT_TRUE(allowed(matcher).empty());
        return text;
      }
      text += tokenizer_->token_bytes(id);
    }
    ADD_FAILURE() << "did not end: " << text;
    return text;
  }

  std::optional<Tokenizer> tokenizer_;
};

TEST_F(GrammarMatcherTest, RegexAllowsExactlyItsText) {
  Result<GrammarMatcher> matcher = create(GrammarKind::regex, "(river|rivet)s?");
  ASSERT_TRUE(matcher) << matcher.error().message;
  for (const std::int32_t id : allowed(*matcher)) {
    EXPECT_TRUE(std::string_view("river").starts_with(tokenizer_->token_bytes(id)) ||
                std::string_view("rivet").starts_with(tokenizer_->token_bytes(id)))
        << tokenizer_->token_bytes(id);
  }
  EXPECT_FALSE(*matcher->is_finished());
  const auto rivers = *tokenizer_->encode("rivers", ControlTokens::literal);
  for (const std::int32_t id : rivers) {
    EXPECT_TRUE(matcher->accept(id));
  }
  EXPECT_TRUE(*matcher->is_finished());
  EXPECT_THAT(allowed(*matcher), testing::ElementsAre(kImEnd));
}

TEST_F(GrammarMatcherTest, TextMayComeInOtherTokensThanTheTokenizers) {
  Result<GrammarMatcher> matcher = create(GrammarKind::lark, "start: \"river\" <think> \"s\"");
  ASSERT_TRUE(matcher) << matcher.error().message;
  for (const char* byte : {"r", "i", "v", "e", "r"}) {
    const std::int32_t id = *tokenizer_->token_id(byte);
    ASSERT_TRUE(matcher->accept(id)) << byte;
  }
  EXPECT_FALSE(matcher->accept(*tokenizer_->token_id("<")));
  EXPECT_TRUE(matcher->accept(*tokenizer_->token_id("<think>")));
  EXPECT_FALSE(matcher->accept(kImEnd));
  EXPECT_TRUE(matcher->accept(*tokenizer_->token_id("s")));
  EXPECT_TRUE(matcher->accept(kImEnd));
}

TEST_F(GrammarMatcherTest, ARefusedTokenChangesNothing) {
  Result<GrammarMatcher> matcher = create(GrammarKind::regex, "ab");
  ASSERT_TRUE(matcher);
  const std::vector<std::int32_t> before = allowed(*matcher);
  for (const std::int32_t id : {kImEnd, *tokenizer_->token_id("b"), 650, -1, 100000}) {
    const Result<void> result = matcher->accept(id);
    ASSERT_FALSE(result);
    EXPECT_EQ(result.error().code, ErrorCode::invalid_argument);
    EXPECT_THAT(result.error().message, HasSubstr(std::to_string(id)));
  }
  EXPECT_EQ(allowed(*matcher), before);
}

TEST_F(GrammarMatcherTest, JsonSchemaGivesValidJson) {
  for (unsigned seed = 0; seed < 20; ++seed) {
    Result<GrammarMatcher> matcher = create(GrammarKind::json_schema, R"({"type": "object",
        "properties": {"city": {"type": "string", "maxLength": 12}, "days": {"type": "integer", "maximum": 9},
                       "unit": {"enum": ["C", "F"]}},
        "required": ["city", "days", "unit"], "additionalProperties": false})");
    ASSERT_TRUE(matcher) << matcher.error().message;
    const std::string text = random_text(*matcher, seed, 300);
    boost::system::error_code error;
    const boost::json::value value = boost::json::parse(text, error);
    ASSERT_FALSE(error) << text;
    EXPECT_TRUE(value.at("city").is_string()) << text;
    EXPECT_TRUE(value.at("days").is_int64()) << text;
    EXPECT_TRUE(value.at("unit") == "C" || value.at("unit") == "F") << text;
  }
}

TEST_F(GrammarMatcherTest, ControlTokensMatchNoText) {
  Result<GrammarMatcher> matcher = create(GrammarKind::regex, "(.|\\n)*");
  ASSERT_TRUE(matcher);
  const std::vector<std::int32_t> ids = allowed(*matcher);
  EXPECT_EQ(ids.back(), kImEnd);
  EXPECT_LT(ids[ids.size() - 2], 600);
}

TEST_F(GrammarMatcherTest, LarkMayNameControlTokens) {
  Result<GrammarMatcher> matcher = create(GrammarKind::lark, "start: <think> /[a-z]+/ </think>");
  ASSERT_TRUE(matcher) << matcher.error().message;
  EXPECT_THAT(allowed(*matcher), testing::ElementsAre(624));
  EXPECT_TRUE(matcher->accept(624));
  EXPECT_TRUE(matcher->accept(*tokenizer_->token_id("a")));
  EXPECT_TRUE(matcher->accept(625));
  EXPECT_TRUE(*matcher->is_finished());
}

TEST_F(GrammarMatcherTest, EveryStopTokenEndsIt) {
  const std::vector<std::int32_t> stop_ids{602, 600};
  for (const std::int32_t stop : stop_ids) {
    auto matcher = GrammarMatcher::create({GrammarKind::regex, "a?"}, *tokenizer_,
                                          {.vocab_size = kEmbeddingRows, .stop_ids = stop_ids});
    ASSERT_TRUE(matcher);
    const std::vector<std::int32_t> ids = allowed(*matcher);
    EXPECT_THAT(ids, testing::IsSupersetOf(stop_ids));
    EXPECT_TRUE(matcher->accept(stop));
    EXPECT_TRUE(*matcher->is_finished());
    EXPECT_TRUE(allowed(*matcher).empty());
    EXPECT_FALSE(matcher->accept(stop));
  }
}

TEST_F(GrammarMatcherTest, ErrorsNameWhatIsWrong) {
  struct Case {
    GrammarKind kind;
    std::string text;
    std::string says;
  };
  for (const Case& bad : {
           Case{GrammarKind::json_schema, "{", "JSON Schema"},
           Case{GrammarKind::json_schema, R"({"type": "strin"})", "strin"},
           Case{GrammarKind::json_schema, R"({"not": {}})", "not"},
           Case{GrammarKind::json_schema, R"({"$ref": "https://example.com/x"})", "example.com"},
           Case{GrammarKind::regex, "(a", "regular expression"},
           Case{GrammarKind::regex, "a(?=b)", "regular expression"},
           Case{GrammarKind::lark, "start: missing", "missing"},
           Case{GrammarKind::lark, "", "grammar"},
           Case{GrammarKind::lark, "start: <no_such_token>", "no_such_token"},
           Case{GrammarKind::regex, "\xFF", "UTF-8"},
           Case{GrammarKind::json_schema, std::string(200000, '['), "JSON Schema"},
           Case{GrammarKind::regex, std::string(100000, '('), "regular expression"},
           Case{GrammarKind::lark, "start: " + std::string(100000, '('), "grammar"},
       }) {
    const Result<GrammarMatcher> matcher = create(bad.kind, bad.text);
    ASSERT_FALSE(matcher) << bad.text.substr(0, 80);
    EXPECT_EQ(matcher.error().code, ErrorCode::invalid_argument) << matcher.error().message;
    EXPECT_THAT(matcher.error().message, HasSubstr(bad.says));
    EXPECT_LE(matcher.error().message.size(), 1100U);
  }
}

TEST_F(GrammarMatcherTest, OptionsAreChecked) {
  const GrammarSource source{GrammarKind::regex, "a"};
  EXPECT_FALSE(GrammarMatcher::create(source, *tokenizer_, {.vocab_size = 632, .stop_ids = {}}));
  const std::vector<std::int32_t> unknown{633};
  const std::vector<std::int32_t> negative{-1};
  for (const auto& stop_ids : {unknown, negative}) {
    const auto matcher = GrammarMatcher::create(
        source, *tokenizer_, {.vocab_size = kEmbeddingRows, .stop_ids = stop_ids});
    ASSERT_FALSE(matcher);
    EXPECT_THAT(matcher.error().message, HasSubstr("stop token"));
  }
  auto matcher = create(GrammarKind::regex, "a");
  std::vector<std::uint32_t> mask(matcher->mask_words() - 1);
  EXPECT_FALSE(matcher->allowed_mask(mask));
}

TEST_F(GrammarMatcherTest, BigRepetitionsAreRefusedOrFast) {
  // The work of compiling is limited: either it succeeds or it says so.
  for (const std::string text :
       {"(a|b|ab){1,5000}", "((((a{1,100}){1,100}){1,100}){1,100})x", "(.*a){200}"}) {
    Result<GrammarMatcher> matcher = create(GrammarKind::regex, text);
    if (matcher) {
      std::vector<std::uint32_t> mask(matcher->mask_words());
      (void)matcher->allowed_mask(mask);
    }
  }
}

TEST_F(GrammarMatcherTest, ACloneGoesItsOwnWay) {
  Result<GrammarMatcher> matcher = create(GrammarKind::regex, "(ab|cd)e");
  ASSERT_TRUE(matcher);
  EXPECT_TRUE(matcher->accept(*tokenizer_->token_id("a")));
  Result<GrammarMatcher> clone = matcher->clone();
  ASSERT_TRUE(clone);
  EXPECT_EQ(allowed(*clone), allowed(*matcher));
  EXPECT_TRUE(clone->accept(*tokenizer_->token_id("b")));
  EXPECT_FALSE(matcher->accept(*tokenizer_->token_id("e")));
  EXPECT_TRUE(clone->accept(*tokenizer_->token_id("e")));
  EXPECT_TRUE(*clone->is_finished());
  EXPECT_TRUE(matcher->accept(*tokenizer_->token_id("b")));
}

TEST_F(GrammarMatcherTest, WhitespaceInJsonHasAnEnd) {
  Result<GrammarMatcher> matcher =
      create(GrammarKind::json_schema, R"({"type": "object", "x-guidance": {"lenient": true}})");
  ASSERT_TRUE(matcher) << matcher.error().message;
  EXPECT_TRUE(matcher->accept(*tokenizer_->token_id("{")));
  const std::vector<std::int32_t> blank = *tokenizer_->encode(" ", ControlTokens::literal);
  const std::vector<std::int32_t> line = *tokenizer_->encode("\n", ControlTokens::literal);
  EXPECT_TRUE(matcher->accept(line[0]));
  int blanks = 0;
  while (matcher->accept(blank[0])) {
    ASSERT_LT(++blanks, 100);
  }
  EXPECT_GE(blanks, 16);
  EXPECT_FALSE(matcher->accept(line[0]));
  EXPECT_TRUE(matcher->accept(*tokenizer_->token_id("}")));
}

TEST_F(GrammarMatcherTest, OutlivesItsTokenizer) {
  Result<GrammarMatcher> matcher = create(GrammarKind::regex, "river, gate");
  ASSERT_TRUE(matcher);
  const auto ids = *tokenizer_->encode("river, gate", ControlTokens::literal);
  tokenizer_.reset();
  for (const std::int32_t id : ids) {
    EXPECT_TRUE(matcher->accept(id));
  }
  EXPECT_TRUE(*matcher->is_finished());
}

TEST_F(GrammarMatcherTest, ThreadsMayCreateAtOnce) {
  std::vector<std::jthread> threads;
  for (int thread = 0; thread < 4; ++thread) {
    threads.emplace_back([this] {
      for (int round = 0; round < 10; ++round) {
        Result<GrammarMatcher> matcher = create(GrammarKind::regex, "[a-z]+");
        ASSERT_TRUE(matcher);
        EXPECT_GT(allowed(*matcher).size(), 20U);
      }
    });
  }
}

}  // namespace
}  // namespace sluice
