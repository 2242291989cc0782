// The events of a response, taken together the way a client does, must be the final object.
#include "api/responses/responses_reply.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>

#include "api/responses/custom_input.h"
#include "api/responses/reasoning_seal.h"
#include "api/test_answers.h"

namespace sluice {
namespace {

namespace json = boost::json;
using ::testing::ElementsAre;

const AnswerUsage kUsage{.prompt_tokens = 9,
                         .image_tokens = 4,
                         .cached_tokens = 1,
                         .completion_tokens = 7,
                         .reasoning_tokens = 3};

// Builds the object up from its events and checks each of them on the way.
class Client {
 public:
  void take(const std::vector<SseEvent>& events) {
    for (const SseEvent& event : events) {
      take(event);
    }
  }

  const json::array& output() const { return output_; }
  const json::object& response() const { return response_; }
  const std::vector<std::string>& names() const { return names_; }

 private:
  void take(const SseEvent& sse) {
    const json::object event = json::parse(sse.data).as_object();
    const std::string type(event.at("type").as_string());
    EXPECT_EQ(sse.name, type);
    EXPECT_EQ(event.at("sequence_number"), next_++);
    names_.push_back(type);
    if (const json::value* response = event.if_contains("response")) {
      response_ = response->as_object();
      return;
    }
    const auto index = static_cast<std::size_t>(event.at("output_index").as_int64());
    if (type == "response.output_item.added") {
      EXPECT_EQ(index, output_.size());
      output_.push_back(event.at("item"));
      return;
    }
    ASSERT_EQ(index + 1, output_.size());
    json::object& item = output_.back().as_object();
    if (type == "response.output_item.done") {
      check_done(item, event.at("item").as_object());
      item = event.at("item").as_object();
      return;
    }
    EXPECT_EQ(event.at("item_id"), item.at("id"));
    take_detail(type, event, item);
  }

  static void take_detail(const std::string& type, const json::object& event, json::object& item) {
    const bool summary = type.starts_with("response.reasoning_summary");
    const char* parts = summary ? "summary" : "content";
    if (type.ends_with("part.added")) {
      item[parts].as_array().push_back(event.at("part"));
    } else if (type.ends_with("part.done")) {
      EXPECT_EQ(event.at("part"), item[parts].at(0));
    } else if (type.starts_with("response.function_call_arguments")) {
      grow(type, event, "arguments", item);
    } else if (type.starts_with("response.custom_tool_call_input")) {
      grow(type, event, "input", item);
    } else {
      EXPECT_EQ(event.at(summary ? "summary_index" : "content_index"), 0);
      grow(type, event, "text", item[parts].at(0).as_object());
    }
  }

  static void grow(const std::string& type, const json::object& event, const char* key,
                   json::object& target) {
    if (type.ends_with(".done")) {
      EXPECT_EQ(event.at(key), target.at(key));
      return;
    }
    EXPECT_FALSE(event.at("delta").as_string().empty());
    target[key].as_string() += event.at("delta").as_string();
    if (const json::value* logprobs = event.if_contains("logprobs")) {
      for (const json::value& entry : logprobs->as_array()) {
        target["logprobs"].as_array().push_back(entry);
      }
    }
  }

  // Only the status and the sealed reasoning may be news at the end.
  static void check_done(json::object built, json::object done) {
    built["status"] = done.at("status");
    if (built.contains("encrypted_content")) {
      built["encrypted_content"] = done.at("encrypted_content");
    }
    EXPECT_EQ(json::value(built), json::value(done));
  }

  std::int64_t next_ = 0;
  json::array output_;
  json::object response_;
  std::vector<std::string> names_;
};

ResponseReplyOptions options() {
  ResponseReplyOptions made;
  for (const char* key : {"instructions", "previous_response_id", "max_output_tokens"}) {
    made.echo[key] = nullptr;
  }
  made.echo["parallel_tool_calls"] = true;
  made.echo["store"] = true;
  made.echo["tools"] = json::array();
  made.echo["tool_choice"] = "auto";
  made.echo["metadata"] = json::object();
  made.echo["text"] = json::parse(R"({"format":{"type":"text"}})");
  made.echo["reasoning"] = json::parse(R"({"effort":null,"summary":null})");
  made.tool_targets["mcp__git__log"] = {"mcp__git", "log", false};
  made.tool_targets["patch"] = {"", "patch", true};
  made.now = [] { return std::int64_t{1767225601}; };
  return made;
}

ResponseReply make(ResponseReplyOptions with) {
  return {{"resp_7f", 1767225600, "m", "fp_a"}, std::move(with), [](TokenId) {
            return std::string_view("t");
          }};
}

// An answer with every kind of item, in small pieces.
std::vector<AnswerDelta> rich_answer() {
  return {piece(AnswerPart::reasoning, "so"),
          piece(AnswerPart::reasoning, " it is"),
          piece(AnswerPart::content, "H"),
          piece(AnswerPart::content, "i \xC3\xA9"),
          call("call_1", "f"),
          piece(AnswerPart::call, "{\"a\""),
          piece(AnswerPart::call, ": 1}"),
          call("call_2", "mcp__git__log"),
          piece(AnswerPart::call, "{}"),
          call("call_3", "patch"),
          piece(AnswerPart::call, "{\"input\": "),
          piece(AnswerPart::call, "\"a\\n"),
          piece(AnswerPart::call, "b\\\"c\"}"),
          piece(AnswerPart::content, "Do"),
          piece(AnswerPart::content, "ne.")};
}

Client streamed(ResponseReplyOptions with, const std::vector<AnswerDelta>& deltas,
                const AnswerEnd& end = {}) {
  ResponseReply reply = make(std::move(with));
  Client client;
  client.take(reply.begin(kUsage));
  for (const AnswerDelta& delta : deltas) {
    client.take(reply.delta(0, delta, {}, kUsage));
  }
  client.take(reply.end(0, end, {}, kUsage));
  client.take(reply.finish(kUsage));
  return client;
}

TEST(ResponseReply, DeltasTogetherAreTheFinalObjectAndTheWholeReply) {
  for (const bool summary : {false, true}) {
    ResponseReplyOptions with = options();
    with.summarise_reasoning = summary;
    with.seal_reasoning = true;
    const Client client = streamed(with, rich_answer());
    EXPECT_EQ(json::value(client.output()), client.response().at("output"));
    EXPECT_EQ(client.names().front(), "response.created");
    EXPECT_EQ(client.names().at(1), "response.in_progress");
    EXPECT_EQ(client.names().back(), "response.completed");
    const std::vector<ChoiceAnswer> answers{whole_of(rich_answer())};
    EXPECT_EQ(json::parse(make(with).whole(answers, kUsage)), json::value(client.response()));
  }
}

TEST(ResponseReply, ItemsHaveExactlyTheseMembers) {
  const Client client = streamed(options(), rich_answer());
  EXPECT_EQ(json::value(client.output()), json::parse(R"([
    {"type":"reasoning","id":"rs_7f_0","summary":[],
     "content":[{"type":"reasoning_text","text":"so it is"}],"encrypted_content":null,"status":"completed"},
    {"type":"message","id":"msg_7f_1","role":"assistant","content":[{"type":"output_text",
     "text":"Hi é","annotations":[],"logprobs":[]}],"status":"completed"},
    {"type":"function_call","id":"fc_7f_2","call_id":"call_1","name":"f","arguments":"{\"a\": 1}","status":"completed"},
    {"type":"function_call","id":"fc_7f_3","call_id":"call_2","namespace":"mcp__git","name":"log","arguments":"{}","status":"completed"},
    {"type":"custom_tool_call","id":"ctc_7f_4","call_id":"call_3","name":"patch","input":"a\nb\"c","status":"completed"},
    {"type":"message","id":"msg_7f_5","role":"assistant","content":[{"type":"output_text",
     "text":"Done.","annotations":[],"logprobs":[]}],"status":"completed"}])"));
}

TEST(ResponseReply, TheObjectHasAllKeysFromTheFirstEventOn) {
  ResponseReply reply = make(options());
  const json::value first = json::parse(reply.begin(kUsage).front().data).at("response");
  EXPECT_EQ(first, json::parse(R"({"id":"resp_7f","object":"response","created_at":1767225600,
    "completed_at":null,"status":"in_progress","background":false,"error":null,
    "incomplete_details":null,"instructions":null,"model":"m","output":[],"parallel_tool_calls":true,
    "previous_response_id":null,"reasoning":{"effort":null,"summary":null},"store":true,
    "temperature":1.0,"text":{"format":{"type":"text"}},"tool_choice":"auto","tools":[],"top_p":1.0,
    "truncation":"disabled","max_output_tokens":null,"metadata":{},"usage":null})"));
  const json::object last = streamed(options(), {}).response();
  EXPECT_EQ(last.size(), first.as_object().size());
  EXPECT_EQ(last.at("usage"), json::parse(R"({"input_tokens":9,"input_tokens_details":
    {"cached_tokens":1,"cache_write_tokens":0,"image_tokens":4},"output_tokens":7,"output_tokens_details":
    {"reasoning_tokens":3},"total_tokens":16})"));
  EXPECT_EQ(last.at("completed_at"), 1767225601);
  EXPECT_EQ(last.at("output"), json::array());
}

TEST(ResponseReply, ReasoningIsSealedOrLeftOut) {
  ResponseReplyOptions with = options();
  with.seal_reasoning = true;
  const Client sealed = streamed(with, rich_answer());
  EXPECT_EQ(
      unseal_reasoning(std::string_view(sealed.output().at(0).at("encrypted_content").as_string())),
      "so it is");
  with.include_reasoning = false;
  EXPECT_EQ(streamed(with, rich_answer()).output().at(0).at("type"), "message");
}

TEST(ResponseReply, CutByALimit) {
  const AnswerEnd cut{.reason = FinishReason::length};
  const Client text = streamed(options(), {piece(AnswerPart::content, "He")}, cut);
  EXPECT_EQ(text.names().back(), "response.incomplete");
  EXPECT_EQ(text.response().at("status"), "incomplete");
  EXPECT_EQ(text.response().at("incomplete_details"),
            json::parse(R"({"reason":"max_output_tokens"})"));
  EXPECT_EQ(text.output().at(0).at("status"), "incomplete");

  const Client half =
      streamed(options(), {call("c", "f"), piece(AnswerPart::call, "{\"a\": ")}, cut);
  EXPECT_EQ(half.output().at(0).at("status"), "incomplete");
  EXPECT_EQ(half.output().at(0).at("arguments"), "{\"a\": ");
  const Client ended = streamed(options(), {call("c", "f"), piece(AnswerPart::call, "{}")}, cut);
  EXPECT_EQ(ended.output().at(0).at("status"), "completed");
}

TEST(ResponseReply, CancelledByAnotherRequest) {
  const Client client =
      streamed(options(), {piece(AnswerPart::content, "He")}, {.reason = FinishReason::cancelled});
  EXPECT_EQ(client.names().back(), "response.incomplete");
  EXPECT_EQ(client.response().at("status"), "cancelled");
  EXPECT_TRUE(client.response().at("incomplete_details").is_null());
  EXPECT_TRUE(client.response().at("completed_at").is_null());
  EXPECT_EQ(client.output().at(0).at("status"), "incomplete");
}

TEST(ResponseReply, FailuresCloseWhatIsOpen) {
  ResponseReply reply = make(options());
  Client client;
  client.take(reply.begin(kUsage));
  client.take(reply.delta(0, piece(AnswerPart::content, "Hi"), {}, kUsage));
  client.take(reply.fail(R"({"error":{"message":"it broke","type":"server_error"}})"));
  EXPECT_EQ(client.names().back(), "response.failed");
  EXPECT_EQ(client.response().at("status"), "failed");
  EXPECT_EQ(client.response().at("error"),
            json::parse(R"({"code":"server_error","message":"it broke"})"));
  EXPECT_EQ(json::value(client.output()), client.response().at("output"));
  EXPECT_EQ(client.output().at(0).at("status"), "incomplete");
}

TEST(ResponseReply, TheFinalObjectIsHandedOverOnce) {
  std::vector<json::object> kept;
  ResponseReplyOptions with = options();
  with.on_final = [&](const json::object& response) { kept.push_back(response); };
  const Client client = streamed(with, rich_answer());
  ASSERT_EQ(kept.size(), 1U);
  EXPECT_EQ(json::value(kept[0]), json::value(client.response()));
  const std::vector<ChoiceAnswer> answers{whole_of(rich_answer())};
  make(with).whole(answers, kUsage);
  make(with).fail("{}");
  EXPECT_EQ(kept.size(), 3U);
}

TEST(ResponseReply, LogprobsGoWithTheirText) {
  ResponseReplyOptions with = options();
  with.logprobs = true;
  const TokenEvent token{1, -0.5F, {{1, -0.5F}}};
  const Client client = streamed(
      with, {{AnswerPart::content, "a", {token}, {}}, {AnswerPart::content, "b", {token}, {}}});
  const json::value& part = client.output().at(0).at("content").at(0);
  ASSERT_EQ(part.at("logprobs").as_array().size(), 2U);
  EXPECT_EQ(part.at("logprobs").at(0).at("logprob"), -0.5);
}

TEST(CustomInput, AnySplitGivesTheSameText) {
  const std::string arguments = R"({"input": "é\n\u001b\ud83d\ude00\"q\\"})";
  const std::string want = "\u00e9\n\x1b\U0001F600\"q\\";
  for (std::size_t split = 0; split <= arguments.size(); ++split) {
    CustomInput input;
    std::string text = input.append(arguments.substr(0, split));
    text += input.append(arguments.substr(split));
    EXPECT_EQ(text + input.finish(), want) << split;
  }
  CustomInput bytewise;
  std::string text;
  for (const char c : arguments) {
    text += bytewise.append(std::string_view(&c, 1));
  }
  EXPECT_EQ(text + bytewise.finish(), want);
}

TEST(CustomInput, OtherFormsAreReadAtTheEnd) {
  const auto input_of = [](std::string_view arguments) {
    CustomInput input;
    const std::string text = input.append(arguments);
    return text + input.finish();
  };
  EXPECT_EQ(input_of(R"({"input":"x"})"), "x");
  EXPECT_EQ(input_of(R"({"input": {"a": 1}})"), R"({"a":1})");
  EXPECT_EQ(input_of("{}"), "");
  EXPECT_EQ(input_of(R"({"text": "x"})"), R"({"text": "x"})");
  EXPECT_EQ(input_of(R"({"input": "cut \u00)"), "cut ");
}

}  // namespace
}  // namespace sluice
