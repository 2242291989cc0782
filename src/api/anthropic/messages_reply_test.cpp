// The Anthropic reply: blocks, their order, and that a stream adds up to the whole message.
#include "api/anthropic/messages_reply.h"

#include <gtest/gtest.h>

#include "api/fields/json_text.h"
#include "api/test_answers.h"

namespace sluice {
namespace {

namespace json = boost::json;

constexpr AnswerUsage kUsage{
    .prompt_tokens = 100, .cached_tokens = 64, .completion_tokens = 7, .reasoning_tokens = 3};

MessagesReply make(MessagesReplyOptions options = {}) {
  return MessagesReply({.id = "msg_1", .created = 5, .model = "m", .fingerprint = "fp"}, options);
}

// Text, two calls, text: what a model may say at most.
const std::vector<AnswerDelta> kDeltas{piece(AnswerPart::reasoning, "so"),
                                       piece(AnswerPart::content, "Let "),
                                       piece(AnswerPart::content, "me."),
                                       call("call_a", "f"),
                                       piece(AnswerPart::call, R"({"a": )"),
                                       piece(AnswerPart::call, "1}"),
                                       call("call_b", "g"),
                                       piece(AnswerPart::call, "{}"),
                                       piece(AnswerPart::content, "Done.")};

ChoiceAnswer whole_answer() {
  ChoiceAnswer answer = whole_of(kDeltas);
  answer.end.has_complete_call = true;
  return answer;
}

json::value message_of(const ChoiceAnswer& answer, MessagesReplyOptions options = {}) {
  const std::vector<ChoiceAnswer> choices{answer};
  return *parse_json(make(options).whole(choices, kUsage));
}

TEST(MessagesReply, BlocksInTheOrderTheyWereSaid) {
  const json::value message = message_of(whole_answer());
  EXPECT_EQ(to_json(message.at("content")),
            R"([{"type":"thinking","thinking":"so","signature":"msg_1"},)"
            R"({"type":"text","text":"Let me."},)"
            R"({"type":"tool_use","id":"toolu_a","name":"f","input":{"a":1}},)"
            R"({"type":"tool_use","id":"toolu_b","name":"g","input":{}},)"
            R"({"type":"text","text":"Done."}])");
  EXPECT_EQ(message.at("stop_reason"), "tool_use");
  EXPECT_EQ(to_json(message.at("usage")),
            R"({"input_tokens":36,"cache_creation_input_tokens":0,"cache_read_input_tokens":64,)"
            R"("cache_creation":{"ephemeral_5m_input_tokens":0,"ephemeral_1h_input_tokens":0},)"
            R"("output_tokens":7,"output_tokens_details":{"thinking_tokens":3},)"
            R"("service_tier":"standard"})");
}

TEST(MessagesReply, StreamsAddUpToTheWholeMessage) {
  MessagesReply reply = make();
  std::vector<SseEvent> events = reply.begin(kUsage);
  const auto add = [&](const std::vector<SseEvent>& more) {
    events.insert(events.end(), more.begin(), more.end());
  };
  for (const AnswerDelta& delta : kDeltas) {
    add(reply.delta(0, delta, {}, kUsage));
  }
  add(reply.end(0, whole_answer().end, {}, kUsage));
  add(reply.finish(kUsage));
  json::array blocks;
  std::string arguments;
  for (const SseEvent& event : events) {
    const json::value data = *parse_json(event.data);
    EXPECT_EQ(data.at("type"), json::string(event.name));
    if (event.name == "content_block_start") {
      EXPECT_EQ(data.at("index").as_int64(), std::ssize(blocks));
      blocks.push_back(data.at("content_block"));
      arguments.clear();
    } else if (event.name == "content_block_delta") {
      for (const auto& [key, value] : data.at("delta").as_object()) {
        if (key == "partial_json") {
          arguments += value.as_string();
        } else if (key != "type") {
          json::string& grown = blocks.back().at(key).as_string();
          grown += value.as_string();
        }
      }
    } else if (event.name == "content_block_stop" && blocks.back().at("type") == "tool_use") {
      blocks.back().as_object()["input"] = *parse_json(arguments);
    }
  }
  EXPECT_EQ(blocks, message_of(whole_answer()).at("content").as_array());
  EXPECT_EQ(events.front().name, "message_start");
  EXPECT_EQ(events[events.size() - 2].data.find(R"("stop_reason":"tool_use")") != std::string::npos,
            true);
  EXPECT_EQ(events.back().data, R"({"type":"message_stop"})");
}

TEST(MessagesReply, ACutCallKeepsItsWholeParameters) {
  ChoiceAnswer answer =
      whole_of({call("call_a", "f"), piece(AnswerPart::call, R"({"a": 1, "b": "half of)")});
  answer.end.reason = FinishReason::length;
  const json::value message = message_of(answer);
  EXPECT_EQ(to_json(message.at("content").at(0).at("input")), R"({"a":1})");
  EXPECT_EQ(message.at("stop_reason"), "max_tokens");
}

TEST(MessagesReply, StopReasons) {
  const auto stop = [](const AnswerEnd& end, MessagesReplyOptions options = {}) {
    ChoiceAnswer answer;
    answer.end = end;
    const json::value message = message_of(answer, options);
    return to_json(message.at("stop_reason")) + to_json(message.at("stop_sequence"));
  };
  EXPECT_EQ(stop({}), R"("end_turn"null)");
  EXPECT_EQ(stop({.stop_text = "END"}), R"("stop_sequence""END")");
  EXPECT_EQ(stop({.reason = FinishReason::length}), R"("max_tokens"null)");
  EXPECT_EQ(stop({.reason = FinishReason::length}, {.length_is_context = true}),
            R"("model_context_window_exceeded"null)");
  EXPECT_EQ(stop({.reason = FinishReason::length, .has_complete_call = true}),
            R"("max_tokens"null)");
}

TEST(MessagesReply, MarkedTokensThatWereNotReusedAreCreated) {
  const auto input = [](std::int64_t marked_tokens) {
    const json::value usage = message_of({}, {.marked_tokens = marked_tokens}).at("usage");
    return to_json(json::array{usage.at("input_tokens"), usage.at("cache_creation_input_tokens"),
                               usage.at("cache_read_input_tokens"),
                               usage.at("cache_creation").at("ephemeral_5m_input_tokens")});
  };
  EXPECT_EQ(input(96), "[4,32,64,32]");
  EXPECT_EQ(input(64), "[36,0,64,0]");
  EXPECT_EQ(input(0), "[36,0,64,0]");
}

TEST(MessagesReply, NothingSaidIsNoBlock) {
  EXPECT_TRUE(message_of({}).at("content").as_array().empty());
}

}  // namespace
}  // namespace sluice
