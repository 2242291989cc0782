// Which grammar, words and ids a request asks for, and what it is told when it cannot have them.
#include "api/fields/constraint_fields.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "api/fields/generation_fields.h"
#include "text/testdata/temporary_directory.h"

namespace sluice {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class ConstraintFieldsTest : public ::testing::Test {
 protected:
  static Tokenizer& tokenizer() {
    static Tokenizer loaded = Tokenizer::load(test_tokenizer_directory()).value();
    return loaded;
  }

  ConstraintFields read(const std::string& fields) {
    report_ = FieldReport();
    const auto object = parse_json_object("{" + fields + "}");
    EXPECT_TRUE(object) << fields;
    JsonFields body(*object, "", report_);
    ConstraintFields result = read_constraint_fields(body, limits_);
    body.ignore_rest();
    return result;
  }

  // Whether an answer may be this text, and nothing but its end may follow (or may).
  bool fits(const std::string& fields, const std::string& text) {
    const ConstraintFields read_fields = read(fields);
    EXPECT_FALSE(report_.failed()) << fields << ": " << report_.error().message;
    if (read_fields.grammar == nullptr) {
      ADD_FAILURE() << fields << ": no grammar";
      return false;
    }
    GrammarMatcher matcher = read_fields.grammar->start().value();
    const std::vector<TokenId> ids = tokenizer().encode(text, ControlTokens::literal).value();
    for (const TokenId id : ids) {
      if (!matcher.accept(id)) {
        return false;
      }
    }
    return matcher.accept(*tokenizer().eos_token_id()).has_value();
  }

  ApiError failure(const std::string& fields) {
    read(fields);
    EXPECT_TRUE(report_.failed()) << fields;
    return report_.failed() ? report_.error() : ApiError{ApiErrorKind::internal, "accepted", ""};
  }

  GrammarCache cache_{tokenizer(), {}};
  RequestLimits limits_{.vocab_size = tokenizer().vocab_size(), .grammars = &cache_};
  FieldReport report_;
};

constexpr const char* kSchema =
    R"({"type":"object","properties":{"a":{"type":"integer"}},"required":["a"],"additionalProperties":false})";

TEST_F(ConstraintFieldsTest, ASchemaByEverySpelling) {
  const std::string schema = kSchema;
  const std::string text = R"("{\"type\":\"object\",\"properties\":{\"a\":{\"type\":\"integer\"}},)"
                           R"(\"required\":[\"a\"],\"additionalProperties\":false}")";
  for (
      const std::string& fields : {
          R"("response_format":{"type":"json_schema","json_schema":{"name":"x","strict":true,"schema":)" +
              schema + "}}",
          R"("response_format":{"type":"json_schema","json_schema":{"schema":)" + schema + "}}",
          R"("response_format":{"type":"json_schema","name":"x","schema":)" + schema + "}",
          R"("response_format":{"type":"json_object","schema":)" + schema + "}",
          R"("structured_outputs":{"json":)" + schema + "}",
          R"("guided_json":)" + schema,
          R"("guided_json":)" + text,
          R"("json_schema":)" + schema,
      }) {
    EXPECT_TRUE(fits(fields, R"({"a": 12})")) << fields;
    EXPECT_FALSE(fits(fields, R"({"a": "x"})")) << fields;
    EXPECT_THAT(report_.take_ignored(), ElementsAre()) << fields;
  }
}

TEST_F(ConstraintFieldsTest, AnyObject) {
  for (const char* fields : {R"("response_format":{"type":"json_object"})",
                             R"("structured_outputs":{"json_object":true})"}) {
    EXPECT_TRUE(fits(fields, R"({"b": [1, {"c": null}]})")) << fields;
    EXPECT_FALSE(fits(fields, "[1]")) << fields;
  }
}

TEST_F(ConstraintFieldsTest, RegexChoiceAndGrammar) {
  EXPECT_TRUE(fits(R"("guided_regex":"[ab]{3}")", "aba"));
  EXPECT_FALSE(fits(R"("structured_outputs":{"regex":"[ab]{3}"})", "ab"));
  EXPECT_EQ(failure(R"x("structured_outputs":{"choice":["(y)","","q"]})x").param,
            "structured_outputs.choice[1]");
  const std::string choice = R"x("guided_choice":["a.b*","[x]|(y)","\u00e9\n\"q\"","a/b<c>-d^$"])x";
  for (const char* text : {"a.b*", "[x]|(y)", "\xC3\xA9\n\"q\"", "a/b<c>-d^$"}) {
    EXPECT_TRUE(fits(choice, text)) << text;
  }
  EXPECT_FALSE(fits(R"("guided_choice":["a.b*"])", "axb*"));
  EXPECT_TRUE(fits(R"("guided_grammar":"start: \"x\" DIGIT+\nDIGIT: /[0-9]/")", "x42"));
}

TEST_F(ConstraintFieldsTest, NothingIsAskedFor) {
  for (const char* fields :
       {"", R"("response_format":null)", R"("response_format":{"type":"text"})",
        R"("structured_outputs":{})", R"("structured_outputs":{"json_object":false})",
        R"("bad_words":[])", R"("allowed_token_ids":[])", R"("min_tokens":0)"}) {
    const ConstraintFields read_fields = read(fields);
    EXPECT_FALSE(report_.failed()) << fields;
    EXPECT_EQ(read_fields.grammar, nullptr) << fields;
    EXPECT_EQ(read_fields.tokens_min, 0);
    EXPECT_TRUE(read_fields.bad_words.empty());
    EXPECT_TRUE(read_fields.allowed_token_ids.empty());
  }
}

TEST_F(ConstraintFieldsTest, WhatCannotBeEnforcedIsRefusedWithItsPlace) {
  const std::string strict =
      R"("response_format":{"type":"json_schema","json_schema":{"strict":true,"schema":)";
  const ApiError error =
      failure(strict + R"({"type":"object","properties":{"a":{"items":{"not":{}}}}}}})");
  EXPECT_EQ(error.kind, ApiErrorKind::invalid_json_schema);
  EXPECT_EQ(error.param, "response_format.json_schema.schema");
  EXPECT_THAT(error.message, HasSubstr("#/properties/a/items/not"));
  for (const auto& [schema, place] : std::vector<std::pair<std::string, std::string>>{
           {R"({"type":"array","uniqueItems":true})", "#/uniqueItems"},
           {R"({"anyOf":[{"type":"string","format":"colour"}]})", "#/anyOf/0/format"},
           {R"({"$defs":{"x":{"if":{}}},"$ref":"#/$defs/x"})", "#/$defs/x/if"},
           {R"({"type":"object","properties":{"p":{"type":"strin"}}})", "#/properties/p/type"},
           {R"({"$ref":"https://example.com/x"})", "#/$ref"}}) {
    const ApiError refused = failure(strict + schema + "}}");
    EXPECT_EQ(refused.kind, ApiErrorKind::invalid_json_schema) << schema;
    EXPECT_THAT(refused.message, HasSubstr(place)) << schema;
  }
  EXPECT_EQ(failure(R"("guided_regex":"(a")").kind, ApiErrorKind::invalid_json_schema);
  EXPECT_EQ(failure(R"("guided_json":7)").kind, ApiErrorKind::invalid_json_schema);
  EXPECT_THAT(failure(R"("guided_json":"{")").message, HasSubstr("guided_json"));
  const ApiError large = failure(R"("guided_regex":")" + std::string(300000, 'a') + "\"");
  EXPECT_EQ(large.kind, ApiErrorKind::invalid_json_schema);
  EXPECT_THAT(large.message, HasSubstr("262144"));
}

TEST_F(ConstraintFieldsTest, AWishThatCannotBeKeptBecomesAnyObjectAndIsReported) {
  const std::string fields =
      R"("response_format":{"type":"json_schema","json_schema":{"schema":{"not":{}}}})";
  EXPECT_TRUE(fits(fields, R"({"b": 1})"));
  EXPECT_FALSE(fits(fields, "1"));
  EXPECT_THAT(report_.take_ignored(), ElementsAre("response_format.json_schema.schema"));
}

TEST_F(ConstraintFieldsTest, ErrorsNameTheField) {
  for (const auto& [fields, param] : std::vector<std::pair<std::string, std::string>>{
           {R"("response_format":{"type":"xml"})", "response_format.type"},
           {R"("response_format":"json")", "response_format"},
           {R"("response_format":{"type":"json_schema"})", "response_format.schema"},
           {R"("response_format":{"type":"json_schema","json_schema":{}})",
            "response_format.json_schema.schema"},
           {R"("guided_choice":[])", "guided_choice"},
           {R"("guided_choice":["a",1])", "guided_choice[1]"},
           {R"("guided_regex":1)", "guided_regex"},
           {R"("guided_regex":"a","guided_json":{})", "guided_regex"},
           {R"("response_format":{"type":"json_object"},"json_schema":{})", "json_schema"},
           {R"("structured_outputs":{"structural_tag":"x"})", "structured_outputs.structural_tag"},
           {R"("min_tokens":-1)", "min_tokens"},
           {R"("bad_words":["a",""])", "bad_words[1]"},
           {R"("bad_words":[1])", "bad_words[0]"},
           {R"("allowed_token_ids":[1,100000])", "allowed_token_ids[1]"}}) {
    EXPECT_EQ(failure(fields).param, param) << fields;
  }
  limits_.grammars = nullptr;
  EXPECT_EQ(failure(R"("guided_json":{})").kind, ApiErrorKind::unsupported_parameter);
  EXPECT_EQ(failure(R"("bad_words":["a"])").kind, ApiErrorKind::unsupported_parameter);
}

TEST_F(ConstraintFieldsTest, WordsIdsAndLength) {
  const ConstraintFields fields =
      read(R"("bad_words":["river"," gate"],"allowed_token_ids":[3,5],"min_tokens":7)");
  ASSERT_FALSE(report_.failed());
  std::vector<std::string> spellings;
  for (const std::vector<TokenId>& word : fields.bad_words) {
    spellings.push_back(tokenizer().decode(word, false).value());
  }
  EXPECT_THAT(spellings, ElementsAre("river", " river", "gate", " gate"));
  EXPECT_THAT(fields.allowed_token_ids, ElementsAre(3, 5));
  EXPECT_EQ(fields.tokens_min, 7);
}

TEST_F(ConstraintFieldsTest, TheSameGrammarIsCompiledOnce) {
  const std::string fields = R"("guided_regex":"[a-f]+")";
  const auto first = read(fields).grammar;
  EXPECT_EQ(read(fields).grammar, first);
  EXPECT_NE(read(R"("guided_regex":"[a-e]+")").grammar, first);
  for (std::size_t i = 0; i < GrammarCache::kGrammarsMax; ++i) {
    read(R"("guided_regex":"x{)" + std::to_string(i + 1) + "}\"");
  }
  EXPECT_NE(read(fields).grammar, first);  // the least recently used one had to go
}

}  // namespace
}  // namespace sluice
