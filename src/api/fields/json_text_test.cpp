#include "api/fields/json_text.h"

#include <gtest/gtest.h>

#include <boost/json/object.hpp>
#include <optional>

#include "api/fields/json_fields.h"
#include "api/tools/call_arguments.h"

namespace sluice {
namespace {

namespace json = boost::json;

std::string round_trip(const std::string& text) {
  auto value = parse_json(text);
  return value ? to_json(*value) : "error: " + value.error().message;
}

TEST(ParseJson, SkipsAByteOrderMarkOnce) {
  EXPECT_EQ(round_trip("\xEF\xBB\xBF{}"), "{}");
  EXPECT_FALSE(parse_json("\xEF\xBB\xBF\xEF\xBB\xBF{}"));
}

TEST(ParseJson, HalfSurrogatesBecomeReplacementCharacters) {
  EXPECT_EQ(round_trip(R"("\ud83d")"), "\"\uFFFD\"");
  EXPECT_EQ(round_trip(R"("\ude00x")"), "\"\uFFFDx\"");
  EXPECT_EQ(round_trip(R"("\ud83d\u0041")"), "\"\uFFFDA\"");
  EXPECT_EQ(round_trip(R"("\ud83d\ud83d\ude00")"), "\"\uFFFD\U0001F600\"");
  EXPECT_EQ(round_trip(R"("\uD83D\uDE00")"), "\"\U0001F600\"");
}

TEST(ParseJson, EscapedBackslashesBeforeAULetterAreNotEscapes) {
  EXPECT_EQ(round_trip(R"("\\ud83d")"), R"("\\ud83d")");
  EXPECT_EQ(round_trip(R"("\\\ud83d")"), "\"\\\\\uFFFD\"");
  EXPECT_EQ(round_trip(R"({"\ud83d":1})"), "{\"\uFFFD\":1}");
}

TEST(ParseJson, TheLastOfDuplicateKeysWins) {
  EXPECT_EQ(round_trip(R"({"a":1,"b":2,"a":3})"), R"({"a":3,"b":2})");
}

TEST(ParseJson, DepthIsLimited) {
  const std::string deepest = std::string(kJsonDepthMax, '[') + std::string(kJsonDepthMax, ']');
  EXPECT_TRUE(parse_json(deepest));
  const auto deeper = parse_json("[" + deepest + "]");
  ASSERT_FALSE(deeper);
  EXPECT_EQ(deeper.error().kind, ApiErrorKind::invalid_json);
  EXPECT_FALSE(parse_json(std::string(1 << 20, '[')));
}

TEST(ParseJson, PartsAndScalarsAreLimited) {
  const JsonLimits limits{.parts_max = 6, .scalars_max = 3};
  const auto kind = [&](const char* text) -> std::optional<ApiErrorKind> {
    const auto value = parse_json(text, limits);
    return value ? std::nullopt : std::optional(value.error().kind);
  };
  EXPECT_EQ(kind(R"({"a":[1,true,null],"b":{}})"), std::nullopt) << "five parts, three scalars";
  EXPECT_EQ(kind(R"(["a","b","c","d","e"])"), std::nullopt);
  for (const char* text :
       {R"(["a","b","c","d","e","f"])", "[[],[],[],[],[],[]]", "[1,2,3,4]",
        "[1.5,18446744073709551615,true,null]", R"({"a":"b","c":"d","e":"f"})"}) {
    EXPECT_EQ(kind(text), ApiErrorKind::request_too_large) << text;
  }
  std::string many = "[";
  for (std::size_t i = 0; i < kBodyJsonLimits.parts_max; ++i) {
    many += "[],";
  }
  EXPECT_TRUE(parse_json(many + "0]"));
  EXPECT_EQ(parse_json_object("{\"a\":" + many + "0]}").error().kind,
            ApiErrorKind::request_too_large);
}

TEST(ParseJson, RefusesWhatIsNotOneJsonText) {
  for (const char* text : {"", "{", "{}x", "{} {}", "[1,]", "// c\n{}", "{'a':1}", "NaN", "01",
                           "\"\x80\"", "\"\xED\xA0\x80\"", "\"a\nb\"", "\"\\x\"", "\"\\u12"}) {
    const auto value = parse_json(text);
    ASSERT_FALSE(value) << text;
    EXPECT_EQ(value.error().kind, ApiErrorKind::invalid_json);
    EXPECT_NE(value.error().message.find("not valid JSON"), std::string::npos);
  }
  EXPECT_TRUE(parse_json(" {} \n"));
}

TEST(ParseJson, NumbersAreRoundedCorrectly) {
  const auto value =
      parse_json("[0.3,1e-7,123456789012345680000,5e-324,0.1,8.41e21,1.7976931348623157e308]");
  ASSERT_TRUE(value);
  const json::array& list = value->get_array();
  EXPECT_EQ(list[0].get_double(), 0.3);
  EXPECT_EQ(list[1].get_double(), 1e-7);
  EXPECT_EQ(list[2].get_double(), 123456789012345680000.0);
  EXPECT_EQ(list[3].get_double(), 5e-324);
  EXPECT_EQ(list[4].get_double(), 0.1);
  EXPECT_EQ(list[5].get_double(), 8.41e21);
  EXPECT_EQ(list[6].get_double(), 1.7976931348623157e308);
  EXPECT_TRUE(parse_json("9223372036854775807")->is_int64());
}

TEST(ReplaceInvalidUtf8, KeepsCharactersAndMarksTheRest) {
  EXPECT_EQ(replace_invalid_utf8("a\u00e9\U0001F600"), "a\u00e9\U0001F600");
  EXPECT_EQ(replace_invalid_utf8("a\xF0\x9F"), "a\uFFFD\uFFFD");
  EXPECT_EQ(replace_invalid_utf8("\xC0\xAF"), "\uFFFD\uFFFD");
  EXPECT_EQ(replace_invalid_utf8("\xED\xA0\x80"), "\uFFFD\uFFFD\uFFFD");
}

std::string arguments(const std::string& text) {
  return to_json(tool_call_arguments(json::value(json::string(text))));
}

TEST(ToolCallArguments, CompleteOnesStay) {
  EXPECT_EQ(arguments(R"({"b":1,"a":[0.5,"x"]})"), R"({"b":1,"a":[5E-1,"x"]})");
  EXPECT_EQ(to_json(tool_call_arguments(json::object{{"k", 1}})), R"({"k":1})");
}

TEST(ToolCallArguments, CutOnesKeepTheirCompleteMembers) {
  EXPECT_EQ(arguments(R"({"path": "a.py", "text": "def f():\n  ret)"), R"({"path":"a.py"})");
  EXPECT_EQ(arguments(R"({"path": "a.py")"), R"({"path":"a.py"})");
  EXPECT_EQ(arguments(R"({"a": 1, "n": 12)"), R"({"a":1})");
  EXPECT_EQ(arguments(R"({"a": {"b": [1,2)"), "{}");
  EXPECT_EQ(arguments(R"({"q": "x, \"y", "z": tru)"), R"({"q":"x, \"y"})");
}

TEST(ToolCallArguments, AnythingElseIsEmpty) {
  for (const char* text : {"", "{", "[1]", "\"s\"", "null", "garbage", "{\"a\""}) {
    EXPECT_EQ(arguments(text), "{}") << text;
  }
  EXPECT_EQ(to_json(tool_call_arguments(json::value(7))), "{}");
}

}  // namespace
}  // namespace sluice
