// Requests of both OpenAI dialects: fields, ranges, refusals, what is reported as ignored.
#include "api/openai/chat_request.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "api/chat/chat_prompt.h"
#include "api/fields/json_text.h"
#include "api/openai/completions.h"

namespace sluice {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

const RequestLimits kLimits{.vocab_size = 100};

ApiResult<ChatRequest> parse(const std::string& fields) {
  return parse_chat_request(R"({"messages":[{"role":"user","content":"Hi"}])" +
                                (fields.empty() ? "" : "," + fields) + "}",
                            ChatDefaults{}, kLimits);
}

std::string failure(const std::string& fields) {
  const auto request = parse(fields);
  return request ? "none" : request.error().param;
}

TEST(ChatRequest, Minimal) {
  const auto request = parse("");
  ASSERT_TRUE(request);
  EXPECT_FALSE(request->generation.stream);
  EXPECT_FALSE(request->generation.tokens_max);
  EXPECT_EQ(request->generation.logprobs, -1);
  EXPECT_EQ(request->template_variables, R"({"add_generation_prompt":true,"enable_thinking":true,)"
                                         R"("messages":[{"role":"user","content":"Hi"}]})");
  EXPECT_EQ(request->marked_template_variables, "");
}

TEST(ChatRequest, NullIsAbsentAndWholeDoublesAreIntegers) {
  const auto request = parse(
      R"("max_tokens":null,"temperature":null,"stop":null,"tools":null,"n":2.0,"top_k":5.0,
         "stream_options":null,"logit_bias":null,"response_format":null,"functions":null)");
  ASSERT_TRUE(request) << request.error().message;
  EXPECT_EQ(request->generation.choices, 2);
  EXPECT_EQ(request->generation.sampling.top_k, 5);
  EXPECT_TRUE(request->ignored.empty());
}

TEST(ChatRequest, LengthRules) {
  EXPECT_EQ(parse(R"("max_tokens":5)")->generation.tokens_max, 5);
  EXPECT_EQ(parse(R"("max_tokens":0)")->generation.tokens_max, 0);
  EXPECT_EQ(parse(R"("max_tokens":-1)")->generation.tokens_max, std::nullopt);
  EXPECT_EQ(parse(R"("max_tokens":5,"max_completion_tokens":7)")->generation.tokens_max, 7);
  EXPECT_EQ(failure(R"("max_tokens":-2)"), "max_tokens");
  EXPECT_EQ(failure(R"("max_tokens":"5")"), "max_tokens");
  EXPECT_EQ(failure(R"("max_tokens":5.5)"), "max_tokens");
}

TEST(ChatRequest, RangesAtTheBorderAndJustOutside) {
  const std::vector<std::tuple<std::string, std::string, std::string>> cases{
      {"temperature", "0", "-0.001"},
      {"temperature", "2", "2.001"},
      {"top_p", "0", "-0.001"},
      {"top_p", "1", "1.001"},
      {"min_p", "1", "1.001"},
      {"presence_penalty", "-2", "-2.001"},
      {"frequency_penalty", "2", "2.001"},
      {"repetition_penalty", "2", "2.001"},
      {"repetition_penalty", "0.001", "0"},
      {"repeat_penalty", "0.001", "0"},
      {"top_k", "-1", "-2"},
      {"n", "8", "9"},
      {"n", "1", "0"},
      {"timeout", "0.5", "0"}};
  for (const auto& [key, inside, outside] : cases) {
    EXPECT_TRUE(parse("\"" + key + "\":" + inside)) << key << inside;
    const auto bad = parse("\"" + key + "\":" + outside);
    ASSERT_FALSE(bad) << key << outside;
    EXPECT_EQ(bad.error().kind, ApiErrorKind::invalid_value);
    EXPECT_EQ(bad.error().param, key);
    EXPECT_EQ(failure("\"" + key + "\":\"1\""), key);
    EXPECT_EQ(failure("\"" + key + "\":true"), key);
  }
}

TEST(ChatRequest, Stops) {
  EXPECT_THAT(parse(R"("stop":"x")")->generation.stop, ElementsAre("x"));
  EXPECT_THAT(parse(R"("stop":["","a",""])")->generation.stop, ElementsAre("a"));
  EXPECT_EQ(failure(R"("stop":7)"), "stop");
  EXPECT_EQ(failure(R"("stop":["a",7])"), "stop[1]");
  EXPECT_EQ(failure(R"("stop":["","","","","","","","","","","","","","","","",""])"), "stop");
  EXPECT_EQ(failure("\"stop\":\"" + std::string(5000, 'x') + "\""), "stop");
  EXPECT_THAT(parse(R"("stop_token_ids":[7])")->generation.stop_token_ids, ElementsAre(7));
  EXPECT_EQ(failure(R"("stop_token_ids":[100])"), "stop_token_ids[0]");
}

TEST(ChatRequest, Logprobs) {
  EXPECT_EQ(parse(R"("logprobs":true)")->generation.logprobs, 0);
  EXPECT_EQ(parse(R"("logprobs":true,"top_logprobs":20)")->generation.logprobs, 20);
  EXPECT_EQ(failure(R"("logprobs":true,"top_logprobs":21)"), "top_logprobs");
  EXPECT_EQ(failure(R"("top_logprobs":3)"), "top_logprobs");
}

TEST(ChatRequest, LogitBias) {
  const auto request = parse(R"("logit_bias":{"7":-100,"99":1.5})");
  ASSERT_TRUE(request);
  EXPECT_EQ(request->generation.sampling.logit_bias.size(), 2U);
  for (const char* bad : {R"({"100":1})", R"({"-1":1})", R"({"x":1})", R"({"7x":1})"}) {
    EXPECT_EQ(failure(std::string("\"logit_bias\":") + bad), "logit_bias") << bad;
  }
  EXPECT_EQ(failure(R"("logit_bias":{"7":101})"), "logit_bias.7");
  EXPECT_EQ(failure(R"("logit_bias":{"7":"x"})"), "logit_bias.7");
}

TEST(ChatRequest, UnknownFieldsAtAnyDepthAreReported) {
  const auto request = parse_chat_request(
      R"({"messages":[{"role":"user","content":[{"type":"text","text":"a","cache_control":{}}],
          "name":"x"}],"diagnostics":{},"store":true,"user":null,
          "stream":true,"stream_options":{"include_usage":true,"other":1}})",
      ChatDefaults{}, kLimits);
  ASSERT_TRUE(request) << request.error().message;
  EXPECT_TRUE(request->generation.include_usage);
  EXPECT_THAT(request->ignored,
              ElementsAre("stream_options.other", "messages[0].name", "diagnostics", "store"));
  EXPECT_NE(request->marked_template_variables, "");
}

TEST(ChatRequest, WhatWouldChangeTheAnswerIsRefused) {
  const std::vector<std::pair<std::string, std::string>> cases{
      {R"("functions":[])", "functions"},
      {R"("function_call":"auto")", "function_call"},
      {R"("response_format":{"type":"json_object"})", "response_format"},
      {R"("guided_json":{})", "guided_json"},
      {R"("bad_words":["x"])", "bad_words"},
      {R"("modalities":["text","audio"])", "modalities"},
      {R"("audio":{})", "audio"},
      {R"("best_of":2)", "best_of"},
      {R"("use_beam_search":true)", "use_beam_search"},
      {R"("prompt_logprobs":1)", "prompt_logprobs"},
      {R"("chat_template":"x")", "chat_template"}};
  for (const auto& [fields, param] : cases) {
    const auto request = parse(fields);
    ASSERT_FALSE(request) << fields;
    EXPECT_EQ(request.error().kind, ApiErrorKind::unsupported_parameter) << fields;
    EXPECT_EQ(request.error().param, param);
  }
  EXPECT_EQ(failure(R"("tool_choice":"required")"), "tool_choice");
  for (const char* off :
       {R"("tools":[])", R"("tool_choice":"auto")", R"("tool_choice":"none")",
        R"("response_format":{"type":"text"})", R"("min_tokens":0)", R"("bad_words":[])",
        R"("use_beam_search":false)", R"("modalities":["text"])", R"("best_of":1)"}) {
    EXPECT_EQ(failure(off), "none") << off;
  }
}

std::string tool(const std::string& name, const std::string& more = {}) {
  return R"({"type":"function","function":{"name":")" + name + R"(","parameters":)" +
         R"({"type":"object","properties":{"z":{"type":"integer"},"a":{}}})" + more + "}}";
}

TEST(ChatRequest, ToolsReachTheTemplateAsSent) {
  const auto request =
      parse(R"("parallel_tool_calls":false,"tools":[)" + tool("g") + R"(,{"name":"é","x":1},)" +
            R"({"type":"function","function":{"name":"later"},"defer_loading":true},)" +
            tool("h", R"(,"strict":true,"cache_control":{"type":"ephemeral"})") + "]");
  ASSERT_TRUE(request) << request.error().message;
  const auto variables = parse_json(request->template_variables);
  EXPECT_EQ(to_json(variables->at("tools")),
            "[" + tool("g") + R"(,{"type":"function","function":{"name":"é",)" + R"("x":1}},)" +
                tool("h", R"(,"strict":true)") + "]");
  const ToolUse& use = request->tool_use;
  ASSERT_NE(use.tools, nullptr);
  EXPECT_EQ(use.tools->tools.size(), 4U);
  EXPECT_TRUE(use.tools->find("h")->strict);
  EXPECT_TRUE(use.tools->find("g")->find("z")->type.integer);
  EXPECT_TRUE(use.tools->find("later") != nullptr);
  EXPECT_TRUE(use.one_call);
  EXPECT_FALSE(use.forbidden);
  EXPECT_EQ(request->ignored, std::vector<std::string>{"tools[3].strict"}) << "needs grammars";
}

TEST(ChatRequest, NoTools) {
  for (const char* fields : {"", R"("tools":[])", R"("tools":null,"tool_choice":"auto")"}) {
    const auto request = parse(fields);
    ASSERT_TRUE(request);
    EXPECT_EQ(request->tool_use.tools, nullptr);
    EXPECT_FALSE(parse_json(request->template_variables)->as_object().contains("tools"));
  }
  EXPECT_TRUE(parse(R"("tool_choice":"none","tools":[)" + tool("f") + "]")->tool_use.forbidden);
}

TEST(ChatRequest, BadToolsAreRefused) {
  const auto tools = [](const std::string& list) { return failure("\"tools\":[" + list + "]"); };
  EXPECT_EQ(failure(R"("tools":{})"), "tools");
  EXPECT_EQ(tools("1"), "tools[0]");
  EXPECT_EQ(tools("{}"), "tools[0].name");
  EXPECT_EQ(tools(R"({"type":"function","function":{}})"), "tools[0].function.name");
  EXPECT_EQ(tools(tool("a b")), "tools[0].function.name");
  EXPECT_EQ(tools(tool("a>")), "tools[0].function.name");
  EXPECT_EQ(tools(tool(std::string(257, 'a'))), "tools[0].function.name");
  EXPECT_EQ(tools(tool(std::string(256, 'a'))), "none");
  EXPECT_EQ(tools(tool("f") + "," + tool("f")), "tools[1].function.name");
  EXPECT_EQ(tools(R"({"name":"f","parameters":[]})"), "tools[0].parameters");
  EXPECT_EQ(tools(R"({"type":"custom","name":"f"})"), "tools[0].type");
  EXPECT_EQ(parse(R"("tools":[{"type":"custom","name":"f"}])").error().kind,
            ApiErrorKind::unsupported_tool);
}

TEST(ChatRequest, ToolChoices) {
  const auto choice = [](const std::string& value, const std::string& tools = tool("f")) {
    const auto request = parse("\"tools\":[" + tools + "],\"tool_choice\":" + value);
    return request ? std::pair(ApiErrorKind::internal, std::string())
                   : std::pair(request.error().kind, request.error().param);
  };
  using Error = std::pair<ApiErrorKind, std::string>;
  const Error forced{ApiErrorKind::unsupported_parameter, "tool_choice"};
  const Error wrong{ApiErrorKind::invalid_value, "tool_choice"};
  EXPECT_EQ(choice(R"("auto")").second, "");
  EXPECT_EQ(choice(R"("none")").second, "");
  for (const char* value :
       {R"("required")", R"("any")", R"({"type":"function","function":{"name":"f"}})",
        R"({"type":"function","name":"f"})",
        R"({"type":"allowed_tools","allowed_tools":{"mode":"auto","tools":[{"type":"function",)"
        R"("function":{"name":"f"}}]}})"}) {
    EXPECT_EQ(choice(value), forced) << value;
    EXPECT_EQ(choice(value, ""), wrong) << value;
  }
  EXPECT_EQ(choice(R"("maybe")"), wrong);
  EXPECT_EQ(choice(R"({"type":"function","function":{"name":"g"}})"), wrong);
  EXPECT_EQ(choice(R"({"type":"allowed_tools","mode":"auto","tools":[{"name":"g"}]})"),
            (Error{ApiErrorKind::invalid_value, "tool_choice.tools[0]"}));
  EXPECT_EQ(choice(R"({"type":"allowed_tools","mode":"x","tools":[{"name":"f"}]})"),
            (Error{ApiErrorKind::invalid_value, "tool_choice.mode"}));
  EXPECT_EQ(choice("1").second, "tool_choice");
}

bool thinks(const std::string& fields) {
  const auto request = parse(fields);
  EXPECT_TRUE(request) << fields << ": " << request.error().message;
  return request &&
         request->template_variables.find(R"("enable_thinking":true)") != std::string::npos;
}

TEST(ChatRequest, ThinkingByEverySpelling) {
  for (const char* off :
       {R"("enable_thinking":false)", R"("chat_template_kwargs":{"enable_thinking":false})",
        R"("thinking":{"type":"disabled"})", R"("thinking_budget":0)",
        R"("reasoning":{"max_tokens":0})", R"("reasoning_effort":"none")",
        R"("reasoning":{"effort":"none"})",
        R"("chat_template_kwargs":{"enable_thinking":false},"enable_thinking":true)",
        R"("enable_thinking":false,"reasoning_effort":"medium")"}) {
    EXPECT_FALSE(thinks(off)) << off;
  }
  for (const char* on :
       {R"("enable_thinking":true)", R"("thinking":{"type":"adaptive"})",
        R"("reasoning_effort":"high")", R"("thinking_budget":-1)",
        R"("chat_template_kwargs":{"enable_thinking":true},"enable_thinking":false)"}) {
    EXPECT_TRUE(thinks(on)) << on;
  }
  EXPECT_EQ(failure(R"("reasoning_effort":"huge")"), "reasoning_effort");
  EXPECT_EQ(failure(R"("thinking":{"type":"maybe"})"), "thinking.type");
}

TEST(ChatRequest, BudgetsOfReasoning) {
  const auto budget = [](const std::string& fields) {
    ChatDefaults defaults;
    defaults.thinking.budgets = {.minimal = 10, .low = 20, .medium = 30};
    const auto request = parse_chat_request(
        R"({"messages":[{"role":"user","content":"Hi"}],)" + fields + "}", defaults, kLimits);
    EXPECT_TRUE(request) << fields;
    return request ? request->generation.reasoning_tokens_max : -2;
  };
  EXPECT_EQ(budget(R"("thinking_token_budget":1,"thinking_budget":2)"), 1);
  EXPECT_EQ(budget(R"("thinking_budget":2,"reasoning":{"max_tokens":3})"), 2);
  EXPECT_EQ(budget(R"("reasoning":{"max_tokens":3},"thinking":{"budget_tokens":4})"), 3);
  EXPECT_EQ(budget(R"("thinking":{"budget_tokens":4},"reasoning_effort":"low")"), 4);
  EXPECT_EQ(budget(R"("chat_template_kwargs":{"thinking_budget":5})"), 5);
  EXPECT_EQ(budget(R"("reasoning_effort":"minimal")"), 10);
  EXPECT_EQ(budget(R"("reasoning":{"effort":"low"})"), 20);
  EXPECT_EQ(budget(R"("chat_template_kwargs":{"reasoning_effort":"medium"})"), 30);
  for (const char* none :
       {R"("reasoning_effort":"high")", R"("reasoning_effort":"max")",
        R"("reasoning_effort":"none")", R"("thinking_budget":-1,"reasoning_effort":"low")",
        R"("thinking_budget":0)", R"("enable_thinking":false,"thinking_budget":9)", R"("n":1)"}) {
    EXPECT_EQ(budget(none), -1) << none;
  }
  // Thinking that was asked for by name is on even when it may not take a single token.
  EXPECT_EQ(budget(R"("enable_thinking":true,"thinking_budget":0)"), 0);
  EXPECT_EQ(failure(R"("thinking_budget":-2)"), "thinking_budget");
}

TEST(ChatRequest, TemplateVariablesOfTheServerCannotBeSet) {
  const auto request = parse(
      R"("chat_template_kwargs":{"messages":[],"tools":[1],"add_generation_prompt":false,"x":[1],)"
      R"("namespace":1,"eos_token":"<|im_end|>","a b":1,"1x":1,"":1,"\u0000mark":"x"})");
  ASSERT_TRUE(request);
  EXPECT_THAT(request->template_variables, HasSubstr(R"("content":"Hi")"));
  EXPECT_THAT(request->template_variables, HasSubstr(R"("add_generation_prompt":true)"));
  EXPECT_THAT(request->template_variables, HasSubstr(R"("x":[1])"));
  for (const char* key : {"tools", "namespace", "eos_token", "a b", "1x", "mark", "\"\""}) {
    EXPECT_EQ(request->template_variables.find(key), std::string::npos) << key;
  }
  EXPECT_THAT(request->ignored, testing::Contains("chat_template_kwargs.eos_token"));
  EXPECT_THAT(request->ignored, testing::Contains("chat_template_kwargs.messages"));
}

TEST(ChatRequest, ContinuationRules) {
  EXPECT_EQ(failure(R"("continue_final_message":true)"), "continue_final_message");
  const auto both = parse_chat_request(
      R"({"messages":[{"role":"user","content":"q"},{"role":"assistant","content":"a"}],
          "continue_final_message":true,"add_generation_prompt":true})",
      ChatDefaults{}, kLimits);
  ASSERT_FALSE(both);
  const auto request = parse_chat_request(
      R"({"messages":[{"role":"user","content":"q"},{"role":"assistant","content":"Once"}],
          "continue_final_message":true,"add_generation_prompt":false})",
      ChatDefaults{}, kLimits);
  ASSERT_TRUE(request) << request.error().message;
  ASSERT_TRUE(request->continuation);
  EXPECT_EQ(request->continuation->text, "Once");
  EXPECT_THAT(request->template_variables, HasSubstr(R"("enable_thinking":false)"));
}

TEST(ChatRequest, BadBodies) {
  const auto kind = [](const std::string& body) {
    return parse_chat_request(body, ChatDefaults{}, kLimits).error().kind;
  };
  EXPECT_EQ(kind("{"), ApiErrorKind::invalid_json);
  EXPECT_EQ(kind("[]"), ApiErrorKind::invalid_type);
  EXPECT_EQ(kind("{}"), ApiErrorKind::missing_parameter);
  EXPECT_EQ(kind(R"({"messages":[],"model":7})"), ApiErrorKind::invalid_type);
  EXPECT_EQ(failure(R"("cache_salt":"")"), "cache_salt");
  EXPECT_EQ(failure(R"("priority":"high")"), "priority");
  EXPECT_EQ(failure(R"("priority":1048577)"), "priority");
}

TEST(ChatRequest, NumbersAndNamesAreBounded) {
  EXPECT_EQ(failure(R"("max_tokens":9223372036854775807)"), "max_tokens");
  EXPECT_EQ(failure(R"("model":")" + std::string(257, 'm') + R"(")"), "model");
}

TEST(Sampling, AbsentValuesComeFromTheModel) {
  GenerationConfig model;
  GenerationFields fields;
  EXPECT_EQ(resolve_sampling(fields.sampling, model, 5).temperature, 0.0F);
  model.do_sample = true;
  model.top_p = 0.95F;
  model.top_k = 20;
  EXPECT_EQ(resolve_sampling(fields.sampling, model, 5).temperature, 1.0F);
  model.temperature = 0.6F;
  fields.sampling.top_p = 0.5F;
  const SamplingParams params = resolve_sampling(fields.sampling, model, 5);
  EXPECT_EQ(params.temperature, 0.6F);
  EXPECT_EQ(params.top_p, 0.5F);
  EXPECT_EQ(params.top_k, 20);
  EXPECT_EQ(params.seed, 5U);
  fields.sampling.top_k = 0;
  fields.sampling.seed = 9;
  EXPECT_EQ(resolve_sampling(fields.sampling, model, 5).top_k, 0);
  EXPECT_EQ(resolve_sampling(fields.sampling, model, 5).seed, 9U);
}

TEST(Sampling, IgnoreEosConcernsTheModelsOwnIdsOnly) {
  GenerationConfig model;
  model.eos_token_ids = {1, 2};
  GenerationFields fields;
  fields.stop_token_ids = {7};
  EXPECT_THAT(resolve_stop(fields, model, 3).stop_token_ids, ElementsAre(7, 1, 2));
  fields.ignore_eos = true;
  EXPECT_THAT(resolve_stop(fields, model, 3).stop_token_ids, ElementsAre(7));
}

TEST(ChatPrompt, ReasoningIsOpenOnlyIfTheTemplateOpenedIt) {
  EXPECT_TRUE(ends_inside_reasoning({"x<think>\n", {}}));
  EXPECT_FALSE(ends_inside_reasoning({"x<think>\n", {{1, 8}}}));
  EXPECT_FALSE(ends_inside_reasoning({"<think>\n\n</think>\n\n", {}}));
  EXPECT_FALSE(ends_inside_reasoning({"", {}}));
}

TEST(ChatPrompt, ContinuationsAreLiteralText) {
  ChatPrompt off{{"<think>\n\n</think>\n\n", {}}, false};
  append_continuation({"", "a</think>", false}, off);
  EXPECT_EQ(off.text.text, "<think>\n\n</think>\n\na</think>");
  ASSERT_EQ(off.text.literal_ranges.size(), 1U);
  EXPECT_EQ(off.text.literal_ranges[0].first, 19U);
  EXPECT_FALSE(off.reasoning_open);

  ChatPrompt on{{"<think>\n", {}}, false};
  append_continuation({"", "so", true}, on);
  EXPECT_EQ(on.text.text, "<think>\nso");
  EXPECT_TRUE(on.reasoning_open);

  ChatPrompt with{{"<think>\n", {}}, false};
  append_continuation({"r", "O", false}, with);
  EXPECT_EQ(with.text.text, "<think>\nr\n</think>\n\nO");
  EXPECT_FALSE(with.reasoning_open);
}

TEST(CompletionRequest, PromptForms) {
  const auto prompts = [](const std::string& prompt) {
    return parse_completion_request("{\"prompt\":" + prompt + "}", kLimits);
  };
  EXPECT_EQ(prompts(R"("a")")->prompts.size(), 1U);
  EXPECT_EQ(prompts(R"(["a","b"])")->prompts.size(), 2U);
  EXPECT_EQ(std::get<std::vector<TokenId>>(prompts("[1,2]")->prompts.at(0)).size(), 2U);
  EXPECT_EQ(prompts("[[1],[2,3.0]]")->prompts.size(), 2U);
  EXPECT_EQ(prompts(R"("a")")->generation.tokens_max, 16);
  for (const char* bad : {"7", "[]", "{}", "[[]]", R"("")", "[1,\"a\"]", "[100]", "[[1],[-1]]",
                          "[null]", "[[[1]]]"}) {
    EXPECT_FALSE(prompts(bad)) << bad;
  }
  EXPECT_EQ(parse_completion_request("{}", kLimits).error().kind, ApiErrorKind::missing_parameter);
}

TEST(CompletionRequest, Fields) {
  const auto with = [](const std::string& fields) {
    return parse_completion_request("{\"prompt\":\"a\"," + fields + "}", kLimits);
  };
  EXPECT_EQ(with(R"("max_tokens":null)")->generation.tokens_max, 16);
  EXPECT_EQ(with(R"("max_tokens":-1)")->generation.tokens_max, std::nullopt);
  EXPECT_EQ(with(R"("logprobs":5)")->generation.logprobs, 5);
  EXPECT_EQ(with(R"("logprobs":6)").error().param, "logprobs");
  EXPECT_EQ(with(R"("suffix":"x")")->suffix, "x");
  EXPECT_FALSE(with(R"("suffix":"")")->suffix);
  EXPECT_EQ(with(R"("n":2,"best_of":3)").error().param, "best_of");
  EXPECT_TRUE(with(R"("n":2,"best_of":2)"));
  EXPECT_TRUE(with(R"("echo":true,"logprobs":0)")->scores_prompt());
  EXPECT_EQ(with(R"("echo":true,"logprobs":0,"suffix":"x")").error().param, "suffix");
  EXPECT_FALSE(with(R"("parse_special":false)")->parse_special);
}

}  // namespace
}  // namespace sluice
