// Values of parameters by the schema of each, and JSON and Python literals as text.
#include "api/tools/parameter_type.h"

#include <gtest/gtest.h>

#include "api/answer/json_literal.h"
#include "api/fields/json_text.h"

namespace sluice {
namespace {

ParameterType type_of(const std::string& schema, const std::string& root = "{}") {
  return read_parameter_type(*parse_json(schema), *parse_json(root));
}

// The JSON, with a ? behind it when nothing fitted.
std::string coerce(const std::string& schema, std::string_view text,
                   const std::string& root = "{}") {
  const CoercedValue value = coerce_value(type_of(schema, root), text);
  return value.json + (value.fits ? "" : "?");
}

TEST(ParameterType, StringsStayAsTheyAre) {
  for (const char* text : {"null", "03106", "{\"a\":1}", "true", "", " x ", "5", "None"}) {
    EXPECT_EQ(coerce(R"({"type":"string"})", text), json_string(text));
  }
}

TEST(ParameterType, OneTypeIsReadWithTolerance) {
  EXPECT_EQ(coerce(R"({"type":"integer"})", "+007"), "7");
  EXPECT_EQ(coerce(R"({"type":"integer"})", "-0"), "-0");
  EXPECT_EQ(coerce(R"({"type":"integer"})", " 5.0\n"), "5");
  EXPECT_EQ(coerce(R"({"type":"integer"})", "123456789012345678901234567890"),
            "123456789012345678901234567890");
  EXPECT_EQ(coerce(R"({"type":"integer"})", "5.5"), "\"5.5\"?");
  EXPECT_EQ(coerce(R"({"type":"integer"})", "five"), "\"five\"?");
  EXPECT_EQ(coerce(R"({"type":"number"})", "1.50"), "1.50");
  EXPECT_EQ(coerce(R"({"type":"number"})", "-2e9"), "-2e9");
  EXPECT_EQ(coerce(R"({"type":"number"})", ".5"), "\".5\"?");
  EXPECT_EQ(coerce(R"({"type":"boolean"})", "True"), "true");
  EXPECT_EQ(coerce(R"({"type":"boolean"})", "FALSE"), "false");
  EXPECT_EQ(coerce(R"({"type":"boolean"})", "yes"), "\"yes\"?");
  EXPECT_EQ(coerce(R"({"type":"null"})", "None"), "null");
  EXPECT_EQ(coerce(R"({"type":"object"})", "{'a': True, \"b\": [None, (1, 2.5),]}"),
            R"({"a": true, "b": [null, [1, 2.5]]})");
  EXPECT_EQ(coerce(R"({"type":"array"})", "[1,\n 2]"), "[1, 2]");
  EXPECT_EQ(coerce(R"({"type":"array"})", "{}"), "\"{}\"?");
  EXPECT_EQ(coerce(R"({"type":"object"})", "{\"a\": \"{\\\"b\\\": 1}\"}"),
            R"({"a": "{\"b\": 1}"})");
}

TEST(ParameterType, OfSeveralTypesTheFirstThatIsWrittenSo) {
  EXPECT_EQ(coerce(R"({"type":["boolean","null"]})", "false"), "false");
  EXPECT_EQ(coerce(R"({"type":["string","null"]})", "null"), "null");
  EXPECT_EQ(coerce(R"({"type":["string","integer"]})", "03106"), "\"03106\"");
  EXPECT_EQ(coerce(R"({"type":["string","integer"]})", "3106"), "3106");
  EXPECT_EQ(coerce(R"({"type":["string","integer"]})", " 3106"), "\" 3106\"");
  EXPECT_EQ(coerce(R"({"type":["integer","number"]})", "5.0"), "5.0");
  EXPECT_EQ(coerce(R"({"type":["string","object"]})", "{broken"), "\"{broken\"");
  EXPECT_EQ(coerce(R"({"type":"string","nullable":true})", "null"), "null");
  EXPECT_EQ(coerce(R"({"anyOf":[{"type":"string"},{"type":"object"}]})", R"({"a":1})"),
            R"({"a": 1})");
  EXPECT_EQ(coerce(R"({"oneOf":[{"type":"integer"},{"type":"null"}]})", "None"), "null");
  EXPECT_EQ(coerce(R"({"allOf":[{"type":["integer","string"]},{"type":"integer"}]})", "x"),
            "\"x\"?");
}

TEST(ParameterType, EnumAndConst) {
  EXPECT_EQ(coerce(R"({"enum":[1,2,"3"]})", "2"), "2");
  EXPECT_EQ(coerce(R"({"enum":[1,2,"3"]})", "3"), "\"3\"");
  EXPECT_EQ(coerce(R"({"type":"string","enum":["5","6"]})", "5"), "\"5\"");
  EXPECT_EQ(coerce(R"({"const":true})", "True"), "true");
  EXPECT_EQ(coerce(R"({"enum":["a",null]})", "null"), "null");
}

TEST(ParameterType, LocalReferences) {
  const std::string root = R"({"$defs":{"n":{"type":"integer"},"l":{"$ref":"#/$defs/l"}}})";
  EXPECT_EQ(coerce(R"({"$ref":"#/$defs/n"})", "5", root), "5");
  EXPECT_EQ(coerce(R"({"allOf":[{"$ref":"#/$defs/n"}],"description":"x"})", "5", root), "5");
  EXPECT_EQ(coerce(R"({"$ref":"#/$defs/l"})", "5", root), "\"5\"");
  EXPECT_EQ(coerce(R"({"$ref":"#/nowhere"})", "5", root), "\"5\"");
  EXPECT_EQ(coerce(R"({"$ref":"http://elsewhere"})", "5", root), "\"5\"");
}

TEST(ParameterType, WithoutATypeOnlyContainersAreRead) {
  for (const char* schema : {"{}", R"({"description":"x"})", "true", R"({"type":"unheard"})"}) {
    EXPECT_EQ(coerce(schema, "5"), "\"5\"");
    EXPECT_EQ(coerce(schema, "null"), "\"null\"");
    EXPECT_EQ(coerce(schema, "[1,2]"), "[1, 2]");
    EXPECT_EQ(coerce(schema, "{not json"), "\"{not json\"");
  }
}

TEST(JsonLiteral, OnlyJsonIsJson) {
  for (const char* text :
       {"{", "[1,]", "{\"a\":1,}", "{'a':1}", "[1 2]", "01", "1.", "\"\\x\"", "\"\n\"", "True",
        "{\"a\" 1}", "{1:2}", "\"\\u12\"", "", "[", "nul", "1}", "{\"a\":1}}", "-"}) {
    EXPECT_EQ(respace_json(text), std::nullopt) << text;
  }
  EXPECT_EQ(respace_json(" {\"a\":[ ],\"b\":{ },\"c\":\"\\u00e9\\n\"} "),
            R"({"a": [], "b": {}, "c": "\u00e9\n"})");
  EXPECT_EQ(respace_json(std::string(300, '[') + std::string(300, ']')), std::nullopt);
}

TEST(JsonLiteral, PythonLiterals) {
  EXPECT_EQ(json_of_python("{'it': 'a\"b', 1: None, None: 'x\\'\\x41\\u00e9\\U0001F600'}"),
            R"({"it": "a\"b", "1": null, "null": "x'A\u00e9\ud83d\ude00"})");
  EXPECT_EQ(json_of_python("[]"), "[]");
  EXPECT_EQ(json_of_python("['a'"), std::nullopt);
  EXPECT_EQ(json_of_python("['\\xZZ']"), std::nullopt);
  EXPECT_EQ(json_of_python("{[1]: 2}"), std::nullopt);
  EXPECT_EQ(json_of_python("['\\q', '\\\\']"), R"(["\\q", "\\"])");
}

}  // namespace
}  // namespace sluice
