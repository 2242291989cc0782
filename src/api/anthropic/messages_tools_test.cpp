// How Anthropic tools become those of chat completions.
#include "api/anthropic/messages_tools.h"

#include <gtest/gtest.h>

#include "api/fields/json_text.h"

namespace sluice {
namespace {

namespace json = boost::json;

struct Read {
  AnthropicTools tools;
  std::string error;
  std::vector<std::string> ignored;
};

Read read(const std::string& body_text) {
  const json::object object = parse_json(body_text)->as_object();
  FieldReport report;
  JsonFields body(object, "", report);
  Read result{.tools = read_anthropic_tools(body), .error = {}, .ignored = {}};
  if (report.failed()) {
    result.error = report.error().param + ": " + report.error().message;
  }
  result.ignored = report.take_ignored();
  return result;
}

TEST(AnthropicTools, AreSaidInTheFormOfChat) {
  const Read one = read(
      R"({"tools":[{"name":"f","description":"d","input_schema":{"type":"object"},"strict":true,)"
      R"("cache_control":{"type":"ephemeral"},"eager_input_streaming":true}],)"
      R"("tool_choice":{"type":"auto","disable_parallel_tool_use":true}})");
  EXPECT_EQ(one.error, "");
  EXPECT_EQ(to_json(one.tools.chat_fields.at("tools")),
            R"([{"type":"function","function":{"name":"f","description":"d",)"
            R"("parameters":{"type":"object"},"strict":true}}])");
  EXPECT_EQ(one.tools.chat_fields.at("tool_choice"), "auto");
  EXPECT_EQ(one.tools.chat_fields.at("parallel_tool_calls"), false);
  EXPECT_TRUE(one.tools.marked);
  EXPECT_EQ(one.ignored, std::vector<std::string>{"tools[0].eager_input_streaming"});
  EXPECT_TRUE(read(R"({"tools":[]})").tools.chat_fields.empty());
}

TEST(AnthropicTools, ChoicesOfAllKinds) {
  const auto choice = [](const std::string& said) {
    return to_json(read(R"({"tools":[{"name":"f"}],"tool_choice":)" + said + "}")
                       .tools.chat_fields.at("tool_choice"));
  };
  EXPECT_EQ(choice(R"({"type":"any"})"), R"("required")");
  EXPECT_EQ(choice(R"({"type":"none"})"), R"("none")");
  EXPECT_EQ(choice(R"({"type":"tool","name":"f"})"),
            R"({"type":"function","function":{"name":"f"}})");
  EXPECT_EQ(
      read(R"({"tool_choice":{"type":"any"}})").error,
      "tool_choice: tool_choice asks for a tool call, but there is no tool that can be called");
  EXPECT_EQ(read(R"({"tools":[{"name":"f"}],"tool_choice":{"type":"tool"}})").error,
            "tool_choice.name: tool_choice.name is required");
  EXPECT_EQ(read(R"({"tool_choice":{"type":"all"}})").error,
            "tool_choice.type: tool_choice.type is 'all', want auto, any, tool or none");
}

TEST(AnthropicTools, DocumentedToolsGetTheirParameters) {
  const Read known = read(R"({"tools":[{"type":"bash_20250124","name":"bash"},)"
                          R"({"type":"text_editor_20250728","name":"str_replace_based_edit_tool"},)"
                          R"({"type":"memory_20250818","name":"memory"}]})");
  const json::array& tools = known.tools.chat_fields.at("tools").as_array();
  ASSERT_EQ(tools.size(), 3U);
  for (const json::value& tool : tools) {
    const json::object& function = tool.at("function").as_object();
    EXPECT_TRUE(function.at("parameters").at("properties").as_object().contains("command"));
    EXPECT_FALSE(function.at("description").as_string().empty());
  }
}

TEST(AnthropicTools, HostedToolsAreLeftOut) {
  const std::string hosted = R"({"type":"web_search_20250305","name":"web_search"})";
  const Read left = read("{\"tools\":[" + hosted + R"(,{"name":"f"}]})");
  EXPECT_EQ(left.tools.chat_fields.at("tools").as_array().size(), 1U);
  EXPECT_EQ(left.ignored, std::vector<std::string>{"tools[0]"});
  EXPECT_NE(read("{\"tools\":[" + hosted + R"(],"tool_choice":{"type":"any"}})").error, "");
  EXPECT_TRUE(read("{\"tools\":[" + hosted + "]}").tools.chat_fields.empty());
}

TEST(AnthropicTools, DeferredToolsAreKnownByTheirText) {
  const Read deferred = read(R"({"tools":[{"name":"f","description":"d","defer_loading":true}]})");
  EXPECT_EQ(deferred.tools.chat_fields.at("tools").at(0).at("defer_loading"), true);
  EXPECT_EQ(deferred.tools.texts.at("f"),
            R"({"type":"function","function":{"name":"f","description":"d",)"
            R"("parameters":{"type":"object","properties":{}}}})");
}

TEST(AnthropicTools, ErrorsNameTheTool) {
  EXPECT_EQ(read(R"({"tools":[{"description":"d"}]})").error,
            "tools[0].name: tools[0].name is required");
  EXPECT_EQ(read(R"({"tools":[5]})").error, "tools[0]: tools[0] is a number, want an object");
  EXPECT_EQ(read(R"({"tools":[{"name":"f","input_schema":"x"}]})").error,
            "tools[0].input_schema: tools[0].input_schema is a string, want an object");
}

}  // namespace
}  // namespace sluice
