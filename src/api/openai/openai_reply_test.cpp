// Replies of both OpenAI dialects: exact keys, and streams that say what the whole reply says.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <boost/json/object.hpp>
#include <cmath>

#include "api/fields/json_text.h"
#include "api/openai/chat_reply.h"
#include "api/openai/completions.h"
#include "api/openai/openai_reply.h"
#include "api/test_answers.h"

namespace sluice {
namespace {

namespace json = boost::json;
using ::testing::ElementsAre;

const ReplyHead kHead{"chatcmpl-1", 1767225600, "m", "fp_a"};
const AnswerUsage kUsage{
    .prompt_tokens = 9, .cached_tokens = 1, .completion_tokens = 7, .reasoning_tokens = 3};

std::string_view token_bytes(TokenId id) {
  static const std::vector<std::string> kBytes{"a", "\xF0\x9F", "b"};
  return kBytes.at(static_cast<std::size_t>(id));
}

ChatReply make(ChatReplyOptions options) {
  return {kHead, std::move(options), token_bytes};
}

ChoiceAnswer answer() {
  return whole_of({piece(AnswerPart::reasoning, "so"), piece(AnswerPart::content, "Hi")});
}

TEST(ChatReply, WholeReplyHasExactlyTheseKeys) {
  ChatReply reply = make({});
  const std::vector<ChoiceAnswer> choices{answer()};
  EXPECT_EQ(
      reply.whole(choices, kUsage),
      R"({"id":"chatcmpl-1","object":"chat.completion","created":1767225600,"model":"m",)"
      R"("system_fingerprint":"fp_a","choices":[{"index":0,"message":{"role":"assistant",)"
      R"("content":"Hi","refusal":null,"reasoning_content":"so","reasoning":"so"},)"
      R"("logprobs":null,"finish_reason":"stop","stop_reason":null}],"usage":{"prompt_tokens":9,)"
      R"("completion_tokens":7,"total_tokens":16,"prompt_tokens_details":{"cached_tokens":1,)"
      R"("image_tokens":0},"completion_tokens_details":{"reasoning_tokens":3,)"
      R"("accepted_prediction_tokens":0,"rejected_prediction_tokens":0}}})");
}

json::object message_of(ChatReplyOptions options, const ChoiceAnswer& choice) {
  ChatReply reply = make(std::move(options));
  const std::vector<ChoiceAnswer> choices{choice};
  return parse_json(reply.whole(choices, kUsage))->at("choices").at(0).at("message").as_object();
}

TEST(ChatReply, ReasoningFormats) {
  const auto text = [](ReasoningFormat format) {
    return to_json(message_of({.reasoning_format = format}, answer()));
  };
  EXPECT_EQ(text(ReasoningFormat::reasoning_content),
            R"({"role":"assistant","content":"Hi","refusal":null,"reasoning_content":"so"})");
  EXPECT_EQ(text(ReasoningFormat::reasoning),
            R"({"role":"assistant","content":"Hi","refusal":null,"reasoning":"so"})");
  EXPECT_EQ(text(ReasoningFormat::inline_tags),
            R"({"role":"assistant","content":"<think>\nso\n</think>\n\nHi","refusal":null})");
  EXPECT_EQ(to_json(message_of({.include_reasoning = false}, answer())),
            R"({"role":"assistant","content":"Hi","refusal":null})");
}

TEST(ChatReply, ContentIsAStringEvenWhenEmpty) {
  ChoiceAnswer choice = whole_of({piece(AnswerPart::reasoning, "cut")});
  choice.end.reason = FinishReason::length;
  EXPECT_EQ(message_of({}, choice).at("content"), "");
}

ChoiceAnswer answer_with_calls() {
  ChoiceAnswer made = whole_of({piece(AnswerPart::reasoning, "so"), call("call_a", "f"),
                                piece(AnswerPart::call, R"({"a": 1})"), call("call_b", "g"),
                                piece(AnswerPart::call, "{}")});
  made.end.has_complete_call = true;
  return made;
}

TEST(ChatReply, CallsOfAWholeReply) {
  ChoiceAnswer choice = answer_with_calls();
  EXPECT_EQ(to_json(message_of({}, choice)),
            R"({"role":"assistant","content":null,"refusal":null,"reasoning_content":"so",)"
            R"("reasoning":"so","tool_calls":[{"id":"call_a","type":"function","function":)"
            R"({"name":"f","arguments":"{\"a\": 1}"}},{"id":"call_b","type":"function",)"
            R"("function":{"name":"g","arguments":"{}"}}]})");
  EXPECT_EQ(message_of({.reasoning_format = ReasoningFormat::inline_tags}, choice).at("content"),
            "<think>\nso\n</think>\n\n");
  choice.add(piece(AnswerPart::content, "Now:"));
  EXPECT_EQ(message_of({}, choice).at("content"), "Now:");
}

TEST(ChatReply, FinishReasonOfCalls) {
  const auto finish = [](const AnswerEnd& end) {
    ChoiceAnswer choice;
    choice.end = end;
    const std::vector<ChoiceAnswer> choices{choice};
    ChatReply reply = make({});
    return parse_json(reply.whole(choices, kUsage))->at("choices").at(0).at("finish_reason");
  };
  EXPECT_EQ(finish({.has_complete_call = true}), "tool_calls");
  EXPECT_EQ(finish({.reason = FinishReason::length, .has_complete_call = true}), "length");
  EXPECT_EQ(finish({}), "stop");
}

// The stream of one choice, as (delta objects, finish reasons).
json::array stream_chunks(ReplyFormat& reply, const std::vector<AnswerDelta>& deltas,
                          const AnswerEnd& end) {
  json::array chunks;
  const auto take = [&](const std::vector<SseEvent>& events) {
    for (const SseEvent& event : events) {
      EXPECT_TRUE(event.name.empty());
      EXPECT_EQ(event.data.find('\n'), std::string::npos);
      if (event.data == "[DONE]") {
        chunks.push_back("[DONE]");
      } else {
        chunks.push_back(*parse_json(event.data));
      }
    }
  };
  take(reply.begin(kUsage));
  for (const AnswerDelta& delta : deltas) {
    take(reply.delta(0, delta, {}, kUsage));
  }
  take(reply.end(0, end, {}, kUsage));
  take(reply.finish(kUsage));
  return chunks;
}

const std::vector<AnswerDelta> kDeltas{{AnswerPart::reasoning, "s", {}},
                                       {AnswerPart::reasoning, "o", {}},
                                       {AnswerPart::content, "H\n", {}},
                                       {AnswerPart::content, "i", {}}};

TEST(ChatReply, StreamShape) {
  ChatReply reply = make({.include_usage = true});
  const json::array chunks = stream_chunks(reply, kDeltas, {FinishReason::stop, "x", {}, {}});
  ASSERT_EQ(chunks.size(), 8U);
  EXPECT_EQ(to_json(chunks[0]),
            R"({"id":"chatcmpl-1","object":"chat.completion.chunk","created":1767225600,)"
            R"("model":"m","system_fingerprint":"fp_a","choices":[{"index":0,"delta":)"
            R"({"role":"assistant","content":""},"logprobs":null,"finish_reason":null}],)"
            R"("usage":null})");
  EXPECT_EQ(to_json(chunks[1].at("choices").at(0).at("delta")),
            R"({"reasoning_content":"s","reasoning":"s"})");
  EXPECT_EQ(to_json(chunks[3].at("choices").at(0).at("delta")), R"({"content":"H\n"})");
  EXPECT_EQ(to_json(chunks[5].at("choices").at(0)),
            R"({"index":0,"delta":{},"logprobs":null,"finish_reason":"stop","stop_reason":"x"})");
  EXPECT_EQ(to_json(chunks[6].at("choices")), "[]");
  EXPECT_EQ(chunks[6].at("usage").at("total_tokens"), 16);
  EXPECT_EQ(chunks[7], "[DONE]");
}

TEST(ChatReply, CallsOfAStream) {
  ChatReply reply = make({.reasoning_format = ReasoningFormat::inline_tags});
  const std::vector<AnswerDelta> deltas{
      {.part = AnswerPart::reasoning, .text = "so"},
      {.part = AnswerPart::call, .text = "", .call = CallHead{"call_a", "f"}},
      {.part = AnswerPart::call, .text = R"({"a": )"},
      {.part = AnswerPart::call, .text = "1}"},
      {.part = AnswerPart::call, .text = "", .call = CallHead{"call_b", "g"}},
      {.part = AnswerPart::call, .text = "{}"}};
  const json::array chunks = stream_chunks(reply, deltas, {.has_complete_call = true});
  ASSERT_EQ(chunks.size(), 10U);
  const auto delta = [&](std::size_t at) {
    return to_json(chunks[at].at("choices").at(0).at("delta"));
  };
  EXPECT_EQ(delta(2), R"({"content":"\n</think>\n\n"})");
  EXPECT_EQ(delta(3), R"({"tool_calls":[{"index":0,"id":"call_a","type":"function",)"
                      R"("function":{"name":"f","arguments":""}}]})");
  EXPECT_EQ(delta(4), R"({"tool_calls":[{"index":0,"function":{"arguments":"{\"a\": "}}]})");
  EXPECT_EQ(delta(7), R"({"tool_calls":[{"index":1,"function":{"arguments":"{}"}}]})");
  EXPECT_EQ(chunks[8].at("choices").at(0).at("finish_reason"), "tool_calls");
}

TEST(ChatReply, UsageOnlyWhenAskedFor) {
  ChatReply plain = make({});
  for (const json::value& chunk : stream_chunks(plain, kDeltas, {})) {
    EXPECT_TRUE(chunk.is_string() || !chunk.as_object().contains("usage"));
  }
  ChatReply continuous = make({.continuous_usage = true});
  EXPECT_EQ(stream_chunks(continuous, kDeltas, {})[2].at("usage").at("prompt_tokens"), 9);
}

TEST(ChatReply, InlineStreamSaysWhatTheWholeReplySays) {
  ChatReply reply = make({.reasoning_format = ReasoningFormat::inline_tags});
  std::string content;
  for (const json::value& chunk : stream_chunks(reply, kDeltas, {})) {
    if (chunk.is_object()) {
      const json::object& delta = chunk.at("choices").at(0).at("delta").as_object();
      if (const json::value* text = delta.if_contains("content")) {
        content += text->as_string();
      }
    }
  }
  EXPECT_EQ(content, "<think>\nso\n</think>\n\nH\ni");
}

TEST(ChatReply, ExcludedReasoningLeavesNoChunks) {
  ChatReply reply = make({.include_reasoning = false});
  EXPECT_EQ(stream_chunks(reply, kDeltas, {}).size(), 5U);
}

TEST(ChatReply, Logprobs) {
  TokenEvent token;
  token.token_id = 1;
  token.logprob = -0.5F;
  token.top_logprobs = {{1, -0.5F}, {2, -INFINITY}};
  ChoiceAnswer choice = answer();
  choice.parts.back().tokens = {token};
  ChatReply reply = make({.logprobs = true});
  const std::vector<ChoiceAnswer> choices{choice};
  const json::value whole = *parse_json(reply.whole(choices, kUsage));
  EXPECT_EQ(to_json(whole.at("choices").at(0).at("logprobs")),
            "{\"content\":[{\"token\":\"\uFFFD\uFFFD\",\"logprob\":-5E-1,\"bytes\":[240,159],"
            "\"top_logprobs\":[{\"token\":\"\uFFFD\uFFFD\",\"logprob\":-5E-1,\"bytes\":[240,159]},"
            "{\"token\":\"b\",\"logprob\":-9.999E3,\"bytes\":[98]}]}],\"refusal\":null}");
  ChatReply stream = make({.logprobs = true});
  const AnswerDelta delta{AnswerPart::content, "x", {token}};
  const json::value chunk = *parse_json(stream.delta(0, delta, {}, kUsage).at(0).data);
  EXPECT_EQ(chunk.at("choices").at(0).at("logprobs"), whole.at("choices").at(0).at("logprobs"));
}

TEST(CompletionReply, WholeAndStreamAgree) {
  const CompletionReplyOptions options{};
  CompletionReply whole(kHead, options, token_bytes);
  const std::vector<ChoiceAnswer> choices{answer()};
  const json::value reply = *parse_json(whole.whole(choices, kUsage));
  EXPECT_EQ(to_json(reply.at("choices")),
            R"([{"index":0,"text":"Hi","logprobs":null,"finish_reason":"stop",)"
            R"("stop_reason":null}])");
  EXPECT_EQ(reply.at("object"), "text_completion");

  CompletionReply stream(kHead, options, token_bytes);
  std::string text;
  const json::array chunks =
      stream_chunks(stream, {{AnswerPart::content, "H", {}}, {AnswerPart::content, "i", {}}}, {});
  for (const json::value& chunk : chunks) {
    if (chunk.is_object()) {
      text += chunk.at("choices").at(0).at("text").as_string();
    }
  }
  EXPECT_EQ(text, "Hi");
  EXPECT_EQ(chunks.back(), "[DONE]");
}

TEST(CompletionReply, LogprobsCountOffsetsInCharacters) {
  TokenEvent token;
  token.token_id = 0;
  token.logprob = -1.0F;
  token.top_logprobs = {{2, -0.5F}};
  ChoiceAnswer choice;
  choice.add({AnswerPart::content, "a", {TokenEvent{.token_id = 0}}});  // the first of a prompt
  choice.add({AnswerPart::content, "a", {token}});
  const CompletionText text{.answer = [](TokenId id) { return std::string(token_bytes(id)); }};
  CompletionReply reply(kHead, {.logprobs = true, .texts = {text}}, token_bytes);
  const std::vector<ChoiceAnswer> choices{choice};
  const json::value whole = *parse_json(reply.whole(choices, kUsage));
  EXPECT_EQ(to_json(whole.at("choices").at(0).at("logprobs")),
            R"({"tokens":["a","a"],"token_logprobs":[null,-1E0],)"
            R"("top_logprobs":[null,{"b":-5E-1,"a":-1E0}],"text_offset":[0,1]})");
}

TEST(CompletionReply, OffsetsAreThoseOfTheTextThatIsReturned) {
  // Tokens of text; 1 begins a character that 2 ends, or is not shown.
  const auto text_of = [](TokenId id) {
    return std::array{"a", "", "é"}.at(static_cast<std::size_t>(id));
  };
  const std::vector<TokenEvent> tokens{{.token_id = 0}, {.token_id = 1}, {.token_id = 1},
                                       {.token_id = 2}, {.token_id = 0}, {.token_id = 1}};
  const auto offsets = [&](const CompletionText& text, std::ptrdiff_t first) {
    json::array said;
    CompletionReply reply(kHead, {.logprobs = true, .texts = {text}}, token_bytes);
    const std::array<AnswerDelta, 2> deltas{
        AnswerDelta{AnswerPart::content, "x", {tokens.begin(), tokens.begin() + first}},
        AnswerDelta{AnswerPart::content, "y", {tokens.begin() + first, tokens.end()}}};
    for (const AnswerDelta& delta : deltas) {
      const json::value chunk = *parse_json(reply.delta(0, delta, {}, kUsage).at(0).data);
      for (const json::value& offset :
           chunk.at("choices").at(0).at("logprobs").at("text_offset").as_array()) {
        said.push_back(offset);
      }
    }
    return to_json(said);
  };
  for (const int first : {0, 2, 3, 6}) {
    EXPECT_EQ(offsets({.answer = text_of}, first), "[0,1,1,1,2,3]");
    // An echo of one character, though its two tokens would spell two: the answer begins behind it.
    const CompletionText echoed{.answer = text_of,
                                .prompt = [](TokenId) { return std::string("bb"); },
                                .prompt_tokens = 2,
                                .prompt_characters = 1};
    EXPECT_EQ(offsets(echoed, first), "[0,1,1,1,2,3]");
  }
}

}  // namespace
}  // namespace sluice
