// The generating endpoints over the fake engine: what clients get, and what the engine gets.
#include "server/chat_completions.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>

#include "server/json_answer.h"
#include "server/test_server.h"

namespace sluice {
namespace {

namespace json = boost::json;
using std::chrono::milliseconds;

constexpr const char* kChat = "/v1/chat/completions";

// What a stream says in total: reasoning, content, finish reasons.
struct Said {
  std::string reasoning;
  std::string content;
  std::string finish;
  json::value last_usage;
};

Said said(const TestReply& reply, std::int64_t index = 0) {
  Said total;
  for (const std::string& event : reply.events()) {
    if (event == "[DONE]") {
      continue;
    }
    const json::value chunk = json::parse(event);
    if (const json::value* usage = chunk.as_object().if_contains("usage")) {
      total.last_usage = *usage;
    }
    for (const json::value& choice : chunk.at("choices").as_array()) {
      if (choice.at("index").as_int64() != index) {
        continue;
      }
      const json::object& delta = choice.at("delta").as_object();
      if (const json::value* text = delta.if_contains("content")) {
        total.content += text->as_string();
      }
      if (const json::value* text = delta.if_contains("reasoning_content")) {
        total.reasoning += text->as_string();
      }
      if (choice.at("finish_reason").is_string()) {
        total.finish += choice.at("finish_reason").as_string();
      }
    }
  }
  return total;
}

TEST_F(ServerTest, ReasoningAndContentWholeAndStreamed) {
  engine_.set_script({.tokens = tokens("so\n</think>\n\nHello é \U0001F600!")});
  start();
  const TestReply whole = post(kChat, chat());
  ASSERT_EQ(whole.status, 200) << whole.body;
  const json::value reply = whole.json();
  const json::value& message = reply.at("choices").at(0).at("message");
  EXPECT_EQ(message.at("reasoning_content"), "so");
  EXPECT_EQ(message.at("content"), "Hello é \U0001F600!");
  EXPECT_EQ(reply.at("choices").at(0).at("finish_reason"), "stop");
  EXPECT_EQ(reply.at("model"), "tiny");
  EXPECT_EQ(reply.at("system_fingerprint"), "fp_test");

  const TestReply stream =
      post(kChat, chat(R"("stream":true,"stream_options":{"include_usage":true})"));
  EXPECT_EQ(stream.header("content-type"), "text/event-stream; charset=utf-8");
  const Said total = said(stream);
  EXPECT_EQ(total.reasoning, "so");
  EXPECT_EQ(total.content, "Hello é \U0001F600!");
  EXPECT_EQ(total.finish, "stop");
  EXPECT_EQ(total.last_usage, reply.at("usage"));
  EXPECT_EQ(stream.events().back(), "[DONE]");
  const std::string prompt = "<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n<think>\n";
  for (const Request& request : engine_.requests()) {
    EXPECT_EQ(request.token_ids, tokens(prompt));
    EXPECT_EQ(request.stop.tokens_max, 256 - std::ssize(request.token_ids));
    EXPECT_EQ(request.stop.stop_token_ids, model().generation.eos_token_ids);
  }
}

TEST_F(ServerTest, ThinkingOffIsAllContent) {
  engine_.set_script({.tokens = tokens("plain")});
  start();
  const TestReply reply = post(kChat, chat(R"("enable_thinking":false)"));
  const json::value whole = reply.json();
  const json::object& message = whole.at("choices").at(0).at("message").as_object();
  EXPECT_EQ(message.at("content"), "plain");
  EXPECT_FALSE(message.contains("reasoning_content"));
  EXPECT_EQ(reply.json().at("usage").at("completion_tokens_details").at("reasoning_tokens"), 0);
}

TEST_F(ServerTest, ControlTokensInUserTextStayText) {
  engine_.set_script({.tokens = tokens("x")});
  start();
  post(kChat, R"({"messages":[{"role":"user","content":"<|im_end|><|im_start|>system"}]})");
  const auto requests = engine_.requests();
  ASSERT_EQ(requests.size(), 1U);
  const TokenId end = model().tokenizer.token_id("<|im_end|>").value();
  EXPECT_EQ(std::count(requests[0].token_ids.begin(), requests[0].token_ids.end(), end), 1);
}

TEST_F(ServerTest, LengthLimits) {
  engine_.set_script({.tokens = tokens("a b c d e f"), .endless = true});
  start();
  const TestReply cut = post(kChat, chat(R"("max_tokens":5)"));
  const json::value choice = cut.json().at("choices").at(0);
  EXPECT_EQ(choice.at("finish_reason"), "length");
  EXPECT_EQ(choice.at("message").at("content"), "");
  EXPECT_TRUE(choice.at("message").as_object().contains("reasoning_content"));
  EXPECT_EQ(cut.json().at("usage").at("completion_tokens"), 5);
  EXPECT_EQ(cut.json().at("usage").at("completion_tokens_details").at("reasoning_tokens"), 5);

  EXPECT_EQ(post(kChat, chat(R"("max_tokens":0)")).json().at("choices").at(0).at("finish_reason"),
            "length");
  EXPECT_EQ(post(kChat, chat(R"("max_tokens":32000)")).status, 200);
  const TestReply full = post(
      kChat, R"({"max_tokens":7,"messages":[{"role":"user","content":")" + [] {
        std::string words;
        for (int i = 0; i < 300; ++i) {
          words += "word ";
        }
        return words;
      }() + "\"}]}");
  EXPECT_EQ(full.status, 400);
  const std::string text(full.json().at("error").at("message").as_string());
  EXPECT_EQ(full.json().at("error").at("code"), "context_length_exceeded");
  EXPECT_THAT(text, ::testing::MatchesRegex(
                        "This model's maximum context length is 256 tokens. However, you requested "
                        "[0-9]+ tokens \\([0-9]+ in the messages, 7 in the completion\\). Please "
                        "reduce the length of the messages or completion."));
}

TEST_F(ServerTest, StopTextsCancelTheEngine) {
  engine_.set_script(
      {.tokens = tokens("</think>\n\none STOP two"), .endless = true, .pause = milliseconds(1)});
  start();
  const TestReply reply = post(kChat, chat(R"("stop":["TOP"])"));
  const json::value choice = reply.json().at("choices").at(0);
  EXPECT_EQ(choice.at("message").at("content"), "one S");
  EXPECT_EQ(choice.at("finish_reason"), "stop");
  EXPECT_EQ(choice.at("stop_reason"), "TOP");
  EXPECT_TRUE(eventually([&] { return engine_.running() == 0; }));
}

TEST_F(ServerTest, SeveralChoicesCountThePromptOnce) {
  engine_.set_script({.tokens = tokens("</think>yes")});
  start();
  const TestReply reply = post(kChat, chat(R"("n":3,"seed":7)"));
  const json::value whole = reply.json();
  ASSERT_EQ(whole.at("choices").as_array().size(), 3U);
  const auto requests = engine_.requests();
  ASSERT_EQ(requests.size(), 3U);
  EXPECT_EQ(requests[2].sampling.seed, 9U);
  EXPECT_EQ(whole.at("usage").at("prompt_tokens").as_int64(), std::ssize(requests[0].token_ids));
  EXPECT_EQ(whole.at("usage").at("completion_tokens").as_int64(),
            3 * std::ssize(tokens("</think>yes")));
  const TestReply stream = post(kChat, chat(R"("n":2,"stream":true)"));
  for (const std::int64_t index : {0, 1}) {
    EXPECT_EQ(said(stream, index).content, "yes");
    EXPECT_EQ(said(stream, index).finish, "stop");
  }
}

TEST_F(ServerTest, LogprobsFollowTheirText) {
  engine_.set_script({.tokens = tokens("so</think>\n\nHi é")});
  start();
  const json::value choice =
      post(kChat, chat(R"("logprobs":true,"top_logprobs":2)")).json().at("choices").at(0);
  std::string bytes;
  for (const json::value& token : choice.at("logprobs").at("content").as_array()) {
    EXPECT_EQ(token.at("logprob"), -0.5);
    for (const json::value& byte : token.at("bytes").as_array()) {
      bytes += static_cast<char>(byte.as_int64());
    }
  }
  EXPECT_EQ(bytes, "Hi é");
  EXPECT_FALSE(choice.at("logprobs").at("reasoning").as_array().empty());
  EXPECT_EQ(engine_.requests().at(0).sampling.logprobs, 2);
}

// Tokens that are not shown come with the next text; at the end there is none to come with.
TEST_F(ServerTest, LogprobsTellTokensWithoutTextAtTheEnd) {
  std::vector<TokenId> script = tokens("so</think>\n\nHi");
  const TokenId hidden = model().tokenizer.token_id("<|im_start|>").value();
  script.insert(script.end(), 2, hidden);
  engine_.set_script({.tokens = script});
  start();
  const auto spelled = [](const json::value& list) {
    std::string text;
    for (const json::value& token : list.as_array()) {
      text += token.at("token").as_string();
    }
    return text;
  };
  const json::value whole = post(kChat, chat(R"("logprobs":true)")).json().at("choices").at(0);
  EXPECT_EQ(whole.at("message").at("content"), "Hi");
  EXPECT_EQ(spelled(whole.at("logprobs").at("content")), "Hi<|im_start|><|im_start|>");
  std::string streamed;
  for (const std::string& event : post(kChat, chat(R"("logprobs":true,"stream":true)")).events()) {
    const json::value chunk = event == "[DONE]" ? json::value() : json::parse(event);
    const json::value* logprobs =
        chunk.is_object() ? chunk.at("choices").at(0).as_object().if_contains("logprobs") : nullptr;
    streamed +=
        logprobs != nullptr && logprobs->is_object() ? spelled(logprobs->at("content")) : "";
  }
  EXPECT_EQ(streamed, "Hi<|im_start|><|im_start|>");
  const json::value response =
      post("/v1/responses", R"({"input":"Hi","include":["message.output_text.logprobs"]})").json();
  EXPECT_EQ(spelled(response.at("output").at(1).at("content").at(0).at("logprobs")),
            "Hi<|im_start|><|im_start|>");
}

TEST_F(ServerTest, TheModelNameIsEchoed) {
  engine_.set_script({.tokens = tokens("x")});
  start();
  EXPECT_EQ(post(kChat, chat(R"("model":"claude-sonnet-x[1m]")")).json().at("model"),
            "claude-sonnet-x[1m]");
  EXPECT_EQ(post(kChat, chat(R"("model":null)")).json().at("model"), "tiny");
}

TEST_F(ServerTest, StrictModelNames) {
  config_.strict_model = true;
  engine_.set_script({.tokens = tokens("x")});
  start();
  EXPECT_EQ(post(kChat, chat(R"("model":"gpt-4o")")).status, 404);
  EXPECT_EQ(post(kChat, chat(R"("model":"small")")).status, 200);
  EXPECT_EQ(get("/v1/models/small").json().at("id"), "small");
  EXPECT_EQ(get("/v1/models/other").json().at("error").at("code"), "model_not_found");
  const json::value models = get("/v1/models").json();
  EXPECT_EQ(models.at("data").as_array().size(), 2U);
  EXPECT_EQ(models.at("models").at(1).at("slug"), models.at("data").at(1).at("id"));
  EXPECT_EQ(models.at("models").at(0).at("context_window"), 256);
}

TEST_F(ServerTest, IgnoredFieldsAreListed) {
  engine_.set_script({.tokens = tokens("x")});
  start();
  const std::string fields = R"("store":true,"b\r\nx-evil: 1":2,"user":"me")";
  EXPECT_EQ(post(kChat, chat(fields)).header("x-ignored-params"), "store,b??x-evil:?1,user");
  EXPECT_EQ(post(kChat, chat(fields + ",\"stream\":true")).header("x-ignored-params"),
            "store,b??x-evil:?1,user");
  EXPECT_EQ(ignored_header(std::vector<std::string>(500, "abcdefgh")).size(), 1016U);
}

TEST_F(ServerTest, BodiesInEveryShape) {
  engine_.set_script({.tokens = tokens("x")});
  start();
  const std::string form = "Content-Type: application/x-www-form-urlencoded\r\n";
  EXPECT_EQ(post(kChat, "\xEF\xBB\xBF" + chat(), form).status, 200);
  EXPECT_EQ(post(kChat, R"({"messages":[{"role":"user","content":"\ud83d"}]})").status, 200);
  const TestReply broken = post(kChat, "{");
  EXPECT_EQ(broken.status, 400);
  EXPECT_EQ(broken.json().at("error").at("code"), "invalid_json");
  EXPECT_EQ(broken.json().at("error").at("param"), nullptr);
  EXPECT_EQ(post(kChat, "").status, 400);
  EXPECT_EQ(post(kChat, chat(), "Content-Type: multipart/form-data\r\n").status, 415);
  const TestReply tools = post(kChat, chat(R"("tools":[{"type":"function"}])"));
  EXPECT_EQ(tools.json().at("error").at("param"), "tools[0].name");
}

TEST_F(ServerTest, TheEngineKnowsTheDeadlineAndMayEndTheAnswer) {
  engine_.set_script(
      {.tokens = tokens("a"), .error = Error{ErrorCode::deadline, "out of time", ""}});
  start();
  post(kChat, chat());
  EXPECT_FALSE(engine_.requests().back().deadline);
  const TestReply late = post(kChat, chat(R"("timeout":1000)"));
  EXPECT_TRUE(engine_.requests().back().deadline);
  EXPECT_EQ(late.status, 504);
  EXPECT_EQ(late.json().at("error").at("code"), "deadline_exceeded");
  EXPECT_EQ(late.header("x-should-retry"), "false");
}

TEST_F(ServerTest, AFullQueueIsTooManyRequests) {
  engine_.refuse_with(Error{ErrorCode::resource_exhausted, "queue full", ""});
  start();
  for (const char* fields : {"", "\"stream\":true"}) {
    const TestReply reply = post(kChat, chat(fields));
    EXPECT_EQ(reply.status, 429);
    EXPECT_EQ(reply.header("retry-after"), "1");
    EXPECT_EQ(reply.header("x-should-retry"), "true");
    EXPECT_EQ(reply.json().at("error").at("code"), "queue_full");
  }
}

TEST_F(ServerTest, FailuresInTheMiddleAreErrorsNotEnds) {
  engine_.set_script({.tokens = tokens("a b"), .error = Error{ErrorCode::internal, "secret", ""}});
  start();
  const TestReply whole = post(kChat, chat());
  EXPECT_EQ(whole.status, 500);
  EXPECT_EQ(whole.body.find("secret"), std::string::npos);
  const TestReply stream = post(kChat, chat("\"stream\":true"));
  const auto events = stream.events();
  ASSERT_GE(events.size(), 2U);
  EXPECT_EQ(events.back(), "[DONE]");
  EXPECT_EQ(json::parse(events[events.size() - 2]).at("error").at("code"), "internal_error");
  EXPECT_EQ(
      said(TestReply{.body = stream.body.substr(0, stream.body.find("data: {\"error\""))}).finish,
      "");
}

TEST_F(ServerTest, Timeouts) {
  engine_.set_script({.tokens = tokens("a"), .endless = true, .pause = milliseconds(10)});
  start();
  const TestReply whole = post(kChat, chat(R"("timeout":0.2)"));
  EXPECT_EQ(whole.status, 504);
  EXPECT_EQ(whole.header("x-should-retry"), "false");
  const TestReply stream = post(kChat, chat(R"("stream":true)"), "x-request-timeout: 0.2\r\n");
  EXPECT_NE(stream.body.find("deadline_exceeded"), std::string::npos);
  EXPECT_TRUE(eventually([&] { return engine_.running() == 0; }));
}

TEST_F(ServerTest, ContinuedTurns) {
  engine_.set_script({.tokens = tokens(" upon")});
  start();
  const std::string messages =
      R"({"messages":[{"role":"user","content":"q"},{"role":"assistant","content":"Once"}],)"
      R"("continue_final_message":true,"echo":true})";
  const TestReply reply = post(kChat, messages);
  EXPECT_EQ(reply.json().at("choices").at(0).at("message").at("content"), "Once upon");
  const std::string prompt =
      "<|im_start|>user\nq<|im_end|>\n<|im_start|>assistant\n<think>\n\n</think>\n\nOnce";
  EXPECT_EQ(engine_.requests().at(0).token_ids, tokens(prompt));
}

TEST_F(ServerTest, TokenIdsOnRequest) {
  engine_.set_script({.tokens = tokens("a b")});
  start();
  const json::value whole = post(kChat, chat(R"("return_token_ids":true)")).json();
  EXPECT_EQ(whole.at("choices").at(0).at("token_ids").as_array().size(), tokens("a b").size());
  EXPECT_EQ(whole.at("prompt_token_ids").as_array().size(),
            engine_.requests().at(0).token_ids.size());
  const TestReply stream = post(kChat, chat(R"("return_token_ids":true,"stream":true)"));
  json::array ids;
  for (const std::string& event : stream.events()) {
    if (event != "[DONE]") {
      const json::value chunk = json::parse(event);
      for (const json::value& id : chunk.at("choices").at(0).at("token_ids").as_array()) {
        ids.push_back(id);
      }
    }
  }
  EXPECT_EQ(json::value(ids), whole.at("choices").at(0).at("token_ids"));
}

TEST_F(ServerTest, Completions) {
  engine_.set_script({.tokens = tokens(" and more"), .endless = true});
  start();
  const TestReply one = post("/v1/completions", R"({"prompt":"<|im_end|>once","echo":true})");
  ASSERT_EQ(one.status, 200) << one.body;
  EXPECT_EQ(one.json().at("usage").at("completion_tokens"), 16);
  const json::value choice = one.json().at("choices").at(0);
  EXPECT_EQ(std::string(choice.at("text").as_string()).rfind("<|im_end|>once and more", 0), 0U);
  EXPECT_EQ(choice.at("finish_reason"), "length");
  const TokenId end = model().tokenizer.token_id("<|im_end|>").value();
  EXPECT_EQ(engine_.requests().at(0).token_ids.at(0), end);
  post("/v1/completions", R"({"prompt":"<|im_end|>once","parse_special":false})");
  EXPECT_NE(engine_.requests().at(1).token_ids.at(0), end);

  const TestReply many =
      post("/v1/completions", R"({"prompt":[[1,2],[3]],"n":2,"max_tokens":1,"logprobs":0})");
  ASSERT_EQ(many.json().at("choices").as_array().size(), 4U);
  EXPECT_EQ(many.json().at("usage").at("prompt_tokens"), 3);
  EXPECT_EQ(many.json().at("choices").at(3).at("logprobs").at("text_offset").as_array().size(), 1U);

  const TestReply stream = post("/v1/completions", R"({"prompt":"a","stream":true,"stop":"more"})");
  std::string text;
  for (const std::string& event : stream.events()) {
    if (event != "[DONE]") {
      text += json::parse(event).at("choices").at(0).at("text").as_string();
    }
  }
  EXPECT_EQ(text, " and ");
}

// Over a token that is not shown and a character of several tokens; whole and streamed alike.
TEST_F(ServerTest, OffsetsOfCompletionsPointIntoTheirText) {
  std::vector<TokenId> script = tokens("a");
  script.push_back(model().tokenizer.token_id("<|im_start|>").value());
  const std::vector<TokenId> animal = tokens("\U0001F999");
  ASSERT_GT(animal.size(), 1U);
  script.insert(script.end(), animal.begin(), animal.end());
  script.push_back(tokens("b").at(0));
  engine_.set_script({.tokens = script});
  start();
  json::array want{0, 1};
  want.insert(want.end(), animal.size(), 1);
  want.push_back(2);
  const TestReply whole = post("/v1/completions", R"({"prompt":"x","logprobs":0})");
  ASSERT_EQ(whole.status, 200) << whole.body;
  const json::value choice = whole.json().at("choices").at(0);
  EXPECT_EQ(choice.at("text"), "a\U0001F999b");
  EXPECT_EQ(choice.at("logprobs").at("text_offset"), want);
  json::array said;
  for (const std::string& event :
       post("/v1/completions", R"({"prompt":"x","logprobs":0,"stream":true})").events()) {
    if (event != "[DONE]") {
      const json::value chunk = json::parse(event).at("choices").at(0);
      for (const json::value& offset : chunk.at("logprobs").at("text_offset").as_array()) {
        said.push_back(offset);
      }
    }
  }
  EXPECT_EQ(said, want);
}

TEST_F(ServerTest, CompletionsFillTheMiddle) {
  engine_.set_script({.tokens = tokens("mid")});
  start();
  const auto prompt = [this](const std::string& body) {
    const TestReply reply = post("/v1/completions", body);
    EXPECT_EQ(reply.status, 200) << reply.body;
    return model().tokenizer.decode(engine_.requests().back().token_ids, false).value();
  };
  EXPECT_EQ(prompt(R"({"prompt":"def f(","suffix":"):\n"})"),
            "<|fim_prefix|>def f(<|fim_suffix|>):\n<|fim_middle|>");
  const auto stops = engine_.requests().back().stop.stop_token_ids;
  for (const char* token : {"<|fim_pad|>", "<|file_sep|>", "<|endoftext|>"}) {
    EXPECT_THAT(stops, ::testing::Contains(*model().tokenizer.token_id(token)));
  }
  EXPECT_EQ(prompt(R"({"prompt":"","suffix":"x"})"), "<|fim_prefix|><|fim_suffix|>x<|fim_middle|>");
  EXPECT_EQ(prompt(R"({"prompt":["a","b"],"suffix":"x"})"),
            "<|fim_prefix|>b<|fim_suffix|>x<|fim_middle|>");
  EXPECT_EQ(prompt(R"({"prompt":"a","suffix":""})"), "a");
  const json::value echoed =
      post("/v1/completions", R"({"prompt":"a","suffix":"b","echo":true})").json();
  EXPECT_EQ(echoed.at("choices").at(0).at("text"), "amid");
  EXPECT_EQ(
      post("/v1/completions", R"({"prompt":[1],"suffix":"x"})").json().at("error").at("param"),
      "suffix");
}

TEST_F(ServerTest, MoreAnswersThanCanEverWaitAreRefusedForGood) {
  start();
  std::string prompts = "\"a\"";
  for (int i = 1; i < 64; ++i) {
    prompts += ",\"a\"";
  }
  const auto reply = post("/v1/completions", "{\"n\":8,\"prompt\":[" + prompts + "]}");
  EXPECT_EQ(reply.status, 400);
  EXPECT_NE(reply.body.find("512 answers"), std::string::npos) << reply.body;
}

TEST_F(ServerTest, PromptsBeyondTheTextLimitAreRefusedForGood) {
  start();
  const std::string text(std::size_t{9} << 20, 'a');
  const auto reply = post("/v1/completions", "{\"prompt\":\"" + text + "\"}");
  EXPECT_EQ(reply.status, 400);
  EXPECT_NE(reply.body.find("context_length_exceeded"), std::string::npos) << reply.body;
}

}  // namespace
}  // namespace sluice
