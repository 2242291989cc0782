// The same parser and the same form of replies as a real answer; every chunk counts as one token.
#include "server/debug_parse.h"

#include <fmt/format.h>

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <utility>
#include <vector>

#include "api/answer/answer_parser.h"
#include "api/fields/json_fields.h"
#include "api/fields/json_text.h"
#include "api/openai/chat_reply.h"
#include "api/tools/tool_fields.h"
#include "server/error_map.h"
#include "server/generation_plan.h"

namespace sluice {
namespace {

namespace json = boost::json;

struct ParseRequest {
  std::vector<std::string> chunks;
  ToolUse tool_use;
  bool thinking_open = false;
  bool cut = false;
};

void read_chunks(JsonFields& body, ParseRequest& request) {
  FieldReport& report = body.report();
  if (auto text = body.string("text")) {
    request.chunks.push_back(std::move(*text));
  } else if (const json::array* chunks = body.array("chunks")) {
    for (std::size_t i = 0; i < chunks->size(); ++i) {
      const std::string path = fmt::format("chunks[{}]", i);
      if (const json::string* chunk = (*chunks)[i].if_string()) {
        request.chunks.emplace_back(chunk->data(), chunk->size());
      } else {
        report.fail(ApiErrorKind::invalid_type, path + " is not a string", path);
      }
    }
  } else {
    report.fail(ApiErrorKind::missing_parameter, "text or chunks is required", "text");
  }
}

ParseRequest read_request(JsonFields& body, const RequestLimits& limits) {
  ParseRequest request;
  read_chunks(body, request);
  request.tool_use = read_tool_fields(body, limits).use;
  request.thinking_open = body.boolean("thinking_open").value_or(false);
  const std::string finish = body.string("finish").value_or("stop");
  request.cut = finish == "length";
  if (finish != "stop" && !request.cut) {
    body.report().fail(ApiErrorKind::invalid_value,
                       fmt::format("finish is '{}', want stop or length", finish.substr(0, 64)),
                       "finish");
  }
  return request;
}

json::string outcome(const std::vector<FinishedCall>& finished, std::size_t call) {
  if (call >= finished.size()) {
    return "truncated";
  }
  return finished[call].repaired ? "repaired" : "ok";
}

// Parses the chunks; says the deltas on the way.
class DebugParse {
 public:
  explicit DebugParse(const ParseRequest& request)
      : reply_({}, {}, [](TokenId) { return std::string_view(); }), parser_(rules_of(request)) {
    for (const std::string& chunk : request.chunks) {
      take(parser_.append(TokenEvent{}, chunk));
    }
    const bool cut = request.cut && !parser_.has_ended();
    take(parser_.finish("", cut));
    answer_.end = {.reason = cut ? FinishReason::length : FinishReason::stop,
                   .has_complete_call = parser_.complete_call_count() > 0};
  }

  json::object result() {
    const std::vector<FinishedCall> finished = parser_.take_finished_calls();
    json::array outcomes;
    for (std::size_t i = 0; i < parser_.call_count(); ++i) {
      outcomes.push_back(json::value(outcome(finished, i)));
    }
    const auto whole = parse_json(reply_.whole(std::span(&answer_, 1), {}));
    const json::object& choice = whole->at("choices").at(0).get_object();
    return json::object{{"message", choice.at("message")},
                        {"finish_reason", choice.at("finish_reason")},
                        {"deltas", std::move(deltas_)},
                        {"call_outcomes", std::move(outcomes)}};
  }

 private:
  static AnswerRules rules_of(const ParseRequest& request) {
    AnswerRules rules{.starts_inside_reasoning = request.thinking_open};
    if (request.tool_use.tools != nullptr && !request.tool_use.forbidden) {
      rules.tools = request.tool_use.tools;
      rules.new_call_id = [count = 0]() mutable { return fmt::format("call_{}", count++); };
      rules.one_call = request.tool_use.one_call;
    }
    return rules;
  }

  void take(std::vector<AnswerDelta> deltas) {
    for (AnswerDelta& delta : deltas) {
      for (const SseEvent& event : reply_.delta(0, delta, {}, {})) {
        deltas_.push_back(parse_json(event.data)->at("choices").at(0).at("delta"));
      }
      answer_.add(std::move(delta));
    }
  }

  ChatReply reply_;
  AnswerParser parser_;
  ChoiceAnswer answer_;
  json::array deltas_;
};

}  // namespace

void handle_debug_parse(const Backend& backend, const std::shared_ptr<Exchange>& exchange) {
  ParseRequest request;
  const auto ignored = read_body(exchange->take_body(), [&](JsonFields& body) {
    request = read_request(body, request_limits(backend));
  });
  if (!ignored) {
    exchange->reply(openai_error_response(ignored.error()));
    return;
  }
  exchange->reply({.body = to_json(DebugParse(request).result())});
}

}  // namespace sluice
