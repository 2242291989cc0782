// Responses requests: what the template gets, what is refused and under which path.
#include "api/responses/responses_request.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <map>

#include "api/responses/reasoning_seal.h"

namespace sluice {
namespace {

namespace json = boost::json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class FakeArchive final : public ResponseArchive {
 public:
  std::optional<json::array> conversation(std::string_view response_id) const override {
    return response_id == "resp_1" ? std::optional(items_) : std::nullopt;
  }
  std::optional<json::object> item(std::string_view item_id) const override {
    for (const json::value& item : items_) {
      if (std::string_view(item.at("id").as_string()) == item_id) {
        return item.as_object();
      }
    }
    return std::nullopt;
  }

 private:
  json::array items_ = json::parse(R"([
    {"id":"item_1_in_0","type":"message","role":"user","content":"first"},
    {"id":"msg_1_0","type":"message","role":"assistant","status":"completed",
     "content":[{"type":"output_text","text":"stored","annotations":[],"logprobs":[]}]},
    {"id":"ref","type":"item_reference"}])")
                           .as_array();
};

ApiResult<ResponsesRequest> parse(const std::string& body) {
  return parse_responses_request(body, ChatDefaults{}, RequestLimits{.vocab_size = 100},
                                 FakeArchive());
}

// The messages of the template for these input items.
json::value messages_of(const std::string& body) {
  const auto request = parse(body);
  if (!request) {
    ADD_FAILURE() << request.error().message;
    return nullptr;
  }
  return json::parse(request->chat.template_variables).at("messages");
}

ApiError error_of(const std::string& body) {
  const auto request = parse(body);
  return request ? ApiError{ApiErrorKind::internal, "no error", ""} : request.error();
}

TEST(OpenaiResponses, TextAndInstructions) {
  EXPECT_EQ(
      messages_of(R"({"input":"Hi","instructions":"Be brief."})"),
      json::parse(R"([{"role":"system","content":"Be brief."},{"role":"user","content":"Hi"}])"));
  EXPECT_EQ(
      messages_of(R"({"input":[{"role":"user","content":[{"type":"input_text","text":"Hi"}]}]})"),
      messages_of(R"({"input":"Hi"})"));
}

TEST(OpenaiResponses, ProbesWithoutTextAreAnswered) {
  const json::value empty = json::parse(R"([{"role":"user","content":""}])");
  EXPECT_EQ(messages_of(R"({"input":""})"), empty);
  EXPECT_EQ(messages_of(R"({"input":[]})"), empty);
  EXPECT_EQ(error_of("{}").param, "input");
}

TEST(OpenaiResponses, NeighbouringAssistantItemsAreOneTurn) {
  EXPECT_EQ(messages_of(R"({"input":[
      {"role":"user","content":"List."},
      {"type":"reasoning","id":"rs_1","summary":[],"content":[{"type":"reasoning_text","text":"think"}]},
      {"type":"message","role":"assistant","id":7,"phase":"x","content":[{"type":"output_text","text":"So:","annotations":[]}]},
      {"type":"function_call","call_id":"a","name":"ls","arguments":"{\"path\": \".\"}"},
      {"type":"custom_tool_call","call_id":"b","name":"sh","input":"ls \"x\""},
      {"type":"function_call_output","call_id":"a","output":"f"},
      {"type":"custom_tool_call_output","call_id":"b","output":[{"type":"input_text","text":"g"}]},
      {"type":"message","role":"assistant","content":"Done."},
      {"role":"user","content":"Thanks"}]})"),
            json::parse(R"([
      {"role":"user","content":"List."},
      {"role":"assistant","content":"So:","reasoning_content":"think","tool_calls":[
        {"type":"function","function":{"name":"ls","arguments":{"path":"."}},"id":"a"},
        {"type":"function","function":{"name":"sh","arguments":{"input":"ls \"x\""}},"id":"b"}]},
      {"role":"tool","content":"f"},
      {"role":"tool","content":"g"},
      {"role":"assistant","content":"Done.","reasoning_content":""},
      {"role":"user","content":"Thanks"}])"));
}

TEST(OpenaiResponses, ReasoningFromContentElseSummaryElseSealed) {
  const auto reasoning = [](const std::string& item) {
    return messages_of(R"({"input":[{"role":"user","content":"a"},{"type":"reasoning",)" + item +
                       R"(},{"role":"assistant","content":"b"},{"role":"user","content":"c"}]})")
        .at(1)
        .at("reasoning_content");
  };
  const std::string sealed = R"("encrypted_content":")" + seal_reasoning("sealed \n\u00e9") + '"';
  const std::string summary = R"("summary":[{"type":"summary_text","text":"short"}])";
  EXPECT_EQ(reasoning(R"("content":[{"type":"reasoning_text","text":"long"}],)" + summary), "long");
  EXPECT_EQ(reasoning(summary + "," + sealed), "short");
  EXPECT_EQ(reasoning(sealed), "sealed \n\u00e9");
  EXPECT_EQ(reasoning(R"("summary":[],"encrypted_content":"gAAAA-foreign")"), "");
}

TEST(OpenaiResponses, SealedReasoningComesBack) {
  for (const std::string text : {"", "a", "ab", "abc", "abcd", "\xF0\x9F\x98\x80 \"<think>\"\n"}) {
    EXPECT_EQ(unseal_reasoning(seal_reasoning(text)), text);
  }
  EXPECT_FALSE(unseal_reasoning("sluice1.*"));
  EXPECT_FALSE(unseal_reasoning("other"));
}

TEST(OpenaiResponses, StoredConversationsAndReferences) {
  EXPECT_EQ(
      messages_of(
          R"({"input":[{"type":"item_reference","id":"msg_1_0"},{"role":"user","content":"x"}]})"),
      messages_of(
          R"({"input":[{"role":"assistant","content":"stored"},{"role":"user","content":"x"}]})"));
  const auto kept = parse(R"({"input":[{"id":"msg_1_0"}]})");
  ASSERT_TRUE(kept) << kept.error().message;
  EXPECT_EQ(kept->input_items.at(0).at("type"), "message");

  const ApiError unknown = error_of(R"({"input":"x","previous_response_id":"resp_2"})");
  EXPECT_EQ(unknown.kind, ApiErrorKind::previous_response_not_found);
  EXPECT_EQ(unknown.param, "previous_response_id");
  EXPECT_EQ(error_of(R"({"input":[{"type":"item_reference","id":"msg_2_0"}]})").param,
            "input[0].id");
  // A reference that was stored itself leads nowhere: there are no cycles.
  EXPECT_EQ(error_of(R"({"input":[{"type":"item_reference","id":"ref"}]})").param, "input[0].id");
}

TEST(OpenaiResponses, ErrorsNameWhatTheClientSent) {
  const auto param = [](const std::string& body) { return error_of(body).param; };
  EXPECT_EQ(param(R"({"input":[1]})"), "input[0]");
  EXPECT_EQ(param(R"({"input":7})"), "input");
  EXPECT_EQ(param(R"({"input":[{"role":"tool","content":"x"}]})"), "input[0].role");
  EXPECT_EQ(param(R"({"input":[{"type":"message","content":"x"}]})"), "input[0].role");
  EXPECT_EQ(param(R"({"input":[{"type":"function_call","arguments":"{}"}]})"), "input[0].name");
  EXPECT_EQ(param(R"({"input":[{"role":"user","content":"a"},{"role":"assistant","content":"b"},
      {"type":"message","role":"assistant","content":[{"type":"output_text"}]}]})"),
            "input[2].content[0].text");
  EXPECT_EQ(param(R"({"input":"x","instructions":1})"), "instructions");
  EXPECT_EQ(param(R"({"input":"x","max_output_tokens":-5})"), "max_output_tokens");
  EXPECT_THAT(error_of(R"({"input":"x","max_output_tokens":-5})").message,
              HasSubstr("max_output_tokens is -5"));
  EXPECT_EQ(param(R"({"input":"x","temperature":3})"), "temperature");
  EXPECT_EQ(param(R"({"input":"x","top_logprobs":21})"), "top_logprobs");
  EXPECT_EQ(param(R"({"input":"x","reasoning":{"effort":"huge"}})"), "reasoning.effort");
  EXPECT_EQ(param(R"({"input":"x","metadata":[]})"), "metadata");
}

TEST(OpenaiResponses, WhatCannotBeHonouredIsRefused) {
  const auto expect_kind = [](const std::string& body, ApiErrorKind kind,
                              const std::string& param) {
    const ApiError error = error_of(body);
    EXPECT_EQ(error.kind, kind) << body << error.message;
    EXPECT_EQ(error.param, param);
  };
  constexpr auto kParameter = ApiErrorKind::unsupported_parameter;
  expect_kind(R"({"input":"x","background":true})", kParameter, "background");
  expect_kind(R"({"input":"x","conversation":"c"})", kParameter, "conversation");
  expect_kind(R"({"input":"x","prompt":{"id":"p"}})", kParameter, "prompt");
  expect_kind(R"({"input":"x","n":2})", kParameter, "n");
  constexpr auto kContent = ApiErrorKind::unsupported_content;
  expect_kind(R"({"input":[{"role":"user","content":[{"type":"input_file","file_data":"x"}]}]})",
              kContent, "input[0].content[0]");
  expect_kind(R"({"input":[{"role":"user","content":[{"type":"input_image","file_id":"f"}]}]})",
              kContent, "input[0].content[0].file_id");
  EXPECT_TRUE(parse(R"({"input":"x","background":false,"conversation":null,"n":1})"));
}

TEST(OpenaiResponses, PicturesKeepTheNamesOfTheirFields) {
  const auto request = parse(R"({"input":[
      {"role":"user","content":[{"type":"input_text","text":"x"},
                                {"type":"input_image","image_url":"data:a","detail":"low"}]},
      {"type":"function_call","call_id":"c","name":"f","arguments":"{}"},
      {"type":"function_call_output","call_id":"c",
       "output":[{"type":"input_image","image_url":"data:b"}]}]})");
  ASSERT_TRUE(request) << request.error().message;
  ASSERT_EQ(request->chat.media.size(), 2U);
  EXPECT_EQ(request->chat.media[0].path, "input[0].content[1].image_url");
  EXPECT_EQ(request->chat.media[0].detail, ImageDetail::low);
  EXPECT_EQ(request->chat.media[1].path, "input[2].output[0].image_url");
  EXPECT_EQ(*request->chat.media[1].texts.at(0), "data:b");
  EXPECT_EQ(error_of(R"({"input":[{"role":"user","content":[{"type":"input_image"}]}]})").param,
            "input[0].content[0].image_url");
}

TEST(OpenaiResponses, WhatHasNoEffectIsReported) {
  const auto request = parse(R"({"input":[{"type":"web_search_call","id":"ws"},
      {"role":"user","content":[{"type":"input_text","text":"x","odd":1}],"other":2}],
      "truncation":"auto","user":"u","max_tool_calls":3,"stream_options":{"a":1},"new_field":{},
      "include":["reasoning.encrypted_content","file_search_call.results"],
      "text":{"verbosity":"low"},"messages":"not these","store":false})");
  ASSERT_TRUE(request) << request.error().message;
  EXPECT_THAT(request->chat.ignored, ::testing::UnorderedElementsAre(
                                         "input[0]", "input[1].other", "input[1].content[0].odd",
                                         "truncation", "user", "max_tool_calls", "stream_options",
                                         "new_field", "include[1]", "text.verbosity", "messages"));
  EXPECT_TRUE(request->seal_reasoning);
  EXPECT_FALSE(request->store);
}

TEST(OpenaiResponses, TheResponseRepeatsTheRequest) {
  const auto request = parse(R"({"input":"x","instructions":"i","metadata":{"a":"b"},
      "max_output_tokens":16,"reasoning":{"effort":"high","summary":"auto"},"top_k":5})");
  ASSERT_TRUE(request) << request.error().message;
  EXPECT_EQ(json::value(request->echo),
            json::parse(R"({"tools":[],"instructions":"i","tool_choice":"auto",
      "parallel_tool_calls":true,"text":{"format":{"type":"text"}},
      "reasoning":{"effort":"high","summary":"auto"},"max_output_tokens":16,"store":true,
      "metadata":{"a":"b"},"previous_response_id":null})"));
  EXPECT_TRUE(request->summarise_reasoning);
  EXPECT_EQ(request->chat.generation.tokens_max, 16);
  EXPECT_EQ(request->chat.generation.sampling.top_k, 5);
  EXPECT_THAT(request->chat.ignored, IsEmpty());
}

class Tools : public ::testing::Test {
 protected:
  void add(const char* text) { tools_.add(json::parse(text).as_array(), "tools"); }

  FieldReport report_;
  PathMap paths_;
  ResponseTools tools_{report_, paths_};
};

TEST_F(Tools, EveryKindOfTool) {
  add(R"([{"type":"web_search"},
    {"type":"function","name":"f","description":"d","parameters":{"type":"object"},"strict":false},
    {"type":"custom","name":"patch","description":"edits","format":{"type":"grammar","syntax":"lark","definition":"start: \"x\""}},
    {"type":"namespace","name":"mcp__git","description":"git","tools":[{"type":"function","name":"log"}]},
    {"type":"brand_new_kind"}])");
  ASSERT_FALSE(report_.failed());
  EXPECT_EQ(json::value(tools_.chat_tools()), json::parse(R"([
    {"type":"function","function":{"name":"f","description":"d","parameters":{"type":"object"},"strict":false}},
    {"type":"function","function":{"name":"patch",
      "description":"edits\n\nThe input must match this lark grammar:\nstart: \"x\"",
      "parameters":{"type":"object","properties":{"input":{"type":"string"}},"required":["input"]}}},
    {"type":"function","function":{"name":"mcp__git__log"}}])"));
  EXPECT_THAT(report_.take_ignored(), ElementsAre("tools[0]", "tools[4]"));
  EXPECT_EQ(tools_.targets().at("mcp__git__log").name_space, "mcp__git");
  EXPECT_EQ(tools_.targets().at("mcp__git__log").name, "log");
  EXPECT_TRUE(tools_.targets().at("patch").custom);
  EXPECT_EQ(paths_.source_of("tools[2].function.parameters"), "tools[3].tools[0].parameters");
  EXPECT_EQ(paths_.source_of("tools[1].function.name"), "tools[2].name");
}

TEST_F(Tools, LaterOnesThatAreKnownAreLeftOut) {
  add(R"([{"type":"function","name":"f","description":"first","defer_loading":true}])");
  tools_.add_later(json::parse(R"([{"type":"function","name":"f","description":"again"},
                      {"type":"function","name":"g"}])")
                       .as_array(),
                   "input[0].tools");
  EXPECT_EQ(json::value(tools_.chat_tools()),
            json::parse(R"([{"type":"function","function":{"name":"f","description":"first"}},
                            {"type":"function","function":{"name":"g"}}])"));
  EXPECT_EQ(paths_.source_of("tools[1].function.name"), "input[0].tools[1].name");
}

TEST_F(Tools, Choices) {
  add(R"([{"type":"function","name":"f"},{"type":"web_search"},
          {"type":"namespace","name":"n","tools":[{"type":"custom","name":"c"}]}])");
  EXPECT_EQ(tools_.choice("required"), "required");
  EXPECT_EQ(tools_.choice(json::parse(R"({"type":"function","name":"f"})")),
            json::parse(R"({"type":"function","function":{"name":"f"}})"));
  EXPECT_EQ(tools_.choice(json::parse(R"({"type":"allowed_tools","mode":"auto","tools":[
              {"type":"custom","name":"c","namespace":"n"},{"type":"web_search"}]})")),
            json::parse(R"({"type":"allowed_tools","allowed_tools":{"mode":"auto","tools":[
              {"type":"function","function":{"name":"n__c"}}]}})"));
  EXPECT_FALSE(report_.failed());
  tools_.choice(json::parse(R"({"type":"web_search"})"));
  ASSERT_TRUE(report_.failed());
  EXPECT_EQ(report_.error().param, "tool_choice");
}

TEST_F(Tools, UnknownNamesCannotBeForced) {
  add(R"([{"type":"function","name":"f"}])");
  tools_.choice(json::parse(R"({"type":"function","name":"g"})"));
  ASSERT_TRUE(report_.failed());
  EXPECT_EQ(report_.error().kind, ApiErrorKind::invalid_value);
}

}  // namespace
}  // namespace sluice
