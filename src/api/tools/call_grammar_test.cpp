// Grammars of forced calls: which answers they let through, over the embedded model's tokenizer.
#include "api/tools/call_grammar.h"

#include <gtest/gtest.h>

#include "api/fields/json_text.h"
#include "api/tools/tool_fields.h"
#include "text/grammar_matcher.h"

namespace sluice {
namespace {

const Tokenizer& tokenizer() {
  static const auto loaded =
      Tokenizer::load(std::string(SLUICE_SOURCE_DIR) + "/models/tiny").value();
  return loaded;
}

ToolSet tools() {
  ToolSet set;
  FieldReport report;
  const auto schema = [](const char* text) { return *parse_json(text); };
  const auto read = schema(R"({"properties":{"path":{"type":"string"},"limit":{}}})");
  declare_tool("read.file", &read, "tool", set, report);
  declare_tool("run", nullptr, "tool", set, report);
  const auto any = schema(R"({"properties":{"a":{}},"additionalProperties":{"type":"string"}})");
  declare_tool("any", &any, "tool", set, report);
  const auto typed = schema(R"({"properties":{"n":{"type":"integer"},"e":{"enum":["a/b","c"]},
    "o":{"type":"object"}},"required":["n"]})");
  declare_tool("typed", &typed, "tool", set, report, true);
  EXPECT_FALSE(report.failed());
  return set;
}

// Whether the text may be a whole answer.
bool accepts(const std::string& text, const CallGrammarOptions& options = {},
             const ToolSet& set = tools()) {
  const std::string grammar = make_call_grammar(set, options);
  const std::vector<std::int32_t> stops{*tokenizer().token_id("<|im_end|>")};
  auto matcher =
      GrammarMatcher::create({GrammarKind::lark, grammar}, tokenizer(),
                             {.vocab_size = tokenizer().vocab_size(), .stop_ids = stops});
  EXPECT_TRUE(matcher) << matcher.error().message << grammar;
  const auto ids = tokenizer().encode(text, ControlTokens::parse).value();
  for (const std::int32_t id : ids) {
    if (!matcher->accept(id)) {
      return false;
    }
  }
  return matcher->accept(stops[0]).has_value();
}

std::string call(const std::string& name, const std::string& parameters = {}) {
  return "<tool_call>\n<function=" + name + ">\n" + parameters + "</function>\n</tool_call>";
}

std::string parameter(const std::string& key, const std::string& value) {
  return "<parameter=" + key + ">\n" + value + "\n</parameter>\n";
}

TEST(CallGrammar, OnlyCallsOfDeclaredTools) {
  EXPECT_TRUE(accepts(call("run")));
  EXPECT_TRUE(accepts(call("run") + "\n" + call("run")));
  EXPECT_FALSE(accepts(call("walk")));
  EXPECT_FALSE(accepts(call("readXfile")));
  EXPECT_FALSE(accepts("Hello"));
  EXPECT_FALSE(accepts("Hello" + call("run")));
  EXPECT_FALSE(accepts(call("run") + "Hello"));
  EXPECT_FALSE(accepts(call("run", parameter("x", "1"))));
}

TEST(CallGrammar, ParametersInAnyOrderAndTagsInValues) {
  EXPECT_TRUE(accepts(call("read.file", parameter("limit", "1") + parameter("path", "a"))));
  EXPECT_TRUE(accepts(call("read.file", parameter("path", "x\n</parameter>\n</function>\ny"))));
  EXPECT_TRUE(accepts(call("read.file")));
  EXPECT_FALSE(accepts(call("read.file", parameter("other", "1"))));
  EXPECT_FALSE(accepts(call("read.file", "<parameter=path>\nunclosed\n")));
}

TEST(CallGrammar, SchemasMayAllowOtherKeys) {
  EXPECT_TRUE(accepts(call("any", parameter("b", "1") + parameter("a", "2"))));
  EXPECT_FALSE(accepts(call("any", parameter("b c", "1"))));
}

TEST(CallGrammar, InFreeFormWhiteSpaceIsTheModels) {
  const CallGrammarOptions free{.free_form = true};
  EXPECT_TRUE(accepts(call("read.file", parameter("path", "a\n</parameter>")), free));
  for (const char* text : {"<tool_call><function=run></function></tool_call>",
                           "<tool_call> <function =run>\n</function></tool_call>",
                           "<tool_call>\n\n<function=read.file><parameter "
                           "=path>a</parameter></function></tool_call>"}) {
    EXPECT_TRUE(accepts(text, free)) << text;
    EXPECT_FALSE(accepts(text)) << text;
  }
  EXPECT_TRUE(accepts(
      "<tool_call><function=typed><parameter=n>1</parameter></function></tool_call>", free));
  EXPECT_FALSE(accepts("<tool_call><function=typed></function></tool_call>", free));
  EXPECT_FALSE(accepts("<tool_call><function=walk></function></tool_call>", free));
  EXPECT_FALSE(accepts("<tool_call><function=run></tool_call>", free));
}

TEST(CallGrammar, Options) {
  EXPECT_FALSE(accepts(call("run") + "\n" + call("run"), {.one_call = true}));
  EXPECT_FALSE(accepts(call("run"), {.allowed = {"read.file"}}));
  EXPECT_TRUE(accepts(call("run"), {.allowed = {"run"}}));
  EXPECT_TRUE(accepts("Hello", {.may_answer = true}));
  EXPECT_TRUE(accepts("Hello\n\n" + call("run"), {.may_answer = true}));
  EXPECT_TRUE(accepts(call("run"), {.may_answer = true}));
  EXPECT_FALSE(accepts("Hello" + call("walk"), {.may_answer = true}));
}

TEST(CallGrammar, StrictToolsFollowTheirSchema) {
  EXPECT_TRUE(accepts(call("typed", parameter("n", "-12"))));
  EXPECT_TRUE(accepts(call("typed", parameter("n", "0") + parameter("e", "a/b"))));
  EXPECT_TRUE(accepts(call("typed", parameter("n", "0") + parameter("o", "{\"a\": 1}"))));
  EXPECT_FALSE(accepts(call("typed")));
  EXPECT_FALSE(accepts(call("typed", parameter("n", "five"))));
  EXPECT_FALSE(accepts(call("typed", parameter("n", "1") + parameter("e", "d"))));
  EXPECT_FALSE(accepts(call("typed", parameter("n", "1") + parameter("o", "[1]"))));
  EXPECT_FALSE(accepts(call("typed", parameter("n", "1") + parameter("n", "1"))));
}

TEST(CallGrammar, TypesMayHoldForToolsThatAreNotStrict) {
  ToolSet set;
  FieldReport report;
  const auto schema = *parse_json(R"({"properties":{"a":{"type":"string"},"n":{"type":"integer"},
    "o":{"type":"boolean"},"e":{"enum":["x","y"]}},"required":["n","e"]})");
  declare_tool("form", &schema, "tool", set, report);
  const auto fits = [&](const std::string& parameters, bool typed = true) {
    return accepts(call("form", parameters), {.typed = typed}, set);
  };
  const std::string n = parameter("n", "1");
  const std::string e = parameter("e", "x");
  EXPECT_TRUE(fits(n + e));
  EXPECT_TRUE(fits(parameter("o", "true") + n + parameter("a", "b") + e));
  EXPECT_TRUE(fits(n + e + parameter("o", "false") + parameter("a", "b")));
  for (const std::string& parameters :
       {std::string(), n, e + n, parameter("n", "one") + e, n + parameter("e", "z"),
        n + e + parameter("o", "maybe"), n + e + parameter("other", "1")}) {
    EXPECT_FALSE(fits(parameters)) << parameters;
  }
  EXPECT_TRUE(fits("", false));
  EXPECT_TRUE(accepts(call("any", parameter("b", "1")), {.typed = true})) << "it allows others";
}

}  // namespace
}  // namespace sluice
