// See anthropic_messages.h. Fields of the Anthropic API come first; the sampling extensions of the
// other endpoints work here too.
#include "api/anthropic_messages.h"

#include <fmt/format.h>

#include <string_view>
#include <utility>

#include "api/anthropic_blocks.h"
#include "api/json_text.h"
#include "api/thinking_fields.h"

namespace sluice {
namespace {

namespace json = boost::json;

struct Thinking {
  bool enabled = false;
  bool omitted = false;
};

Thinking read_thinking_config(JsonFields& body, bool enabled_by_default) {
  Thinking thinking{.enabled = enabled_by_default};
  auto config = body.object("thinking");
  if (!config) {
    return thinking;
  }
  const std::string type = config->string("type").value_or("");
  thinking.enabled = type != "disabled";
  if (type != "enabled" && type != "adaptive" && type != "between_tools" && type != "disabled") {
    body.report().fail(ApiErrorKind::invalid_value,
                       fmt::format("{} is '{}', want enabled, adaptive or disabled",
                                   config->path_of("type"), type.substr(0, 64)),
                       config->path_of("type"));
  }
  thinking.omitted = config->string("display").value_or("") == "omitted";
  config->ignore_rest();
  return thinking;
}

json::object make_variables(const std::vector<ChatTurn>& turns, bool thinking) {
  return {{"messages", template_messages(turns)},
          {"add_generation_prompt", true},
          {"enable_thinking", thinking}};
}

// The system text first, then the messages; an assistant's message at the end is continued.
void read_conversation(JsonFields& body, const MessagesDefaults& defaults,
                       MessagesRequest& request) {
  FieldReport& report = body.report();
  std::vector<ChatTurn> turns;
  if (const json::value* system = body.find("system")) {
    turns.push_back(
        {.role = TurnRole::system, .text = read_anthropic_system(*system, "system", report)});
    if (turns.back().text.empty()) {
      turns.pop_back();
    }
  }
  if (const json::value* messages = body.find("messages")) {
    for (ChatTurn& turn : read_anthropic_messages(*messages, "messages", report)) {
      turns.push_back(std::move(turn));
    }
  } else {
    report.fail(ApiErrorKind::missing_parameter, "messages is required", "messages");
  }
  Thinking thinking = read_thinking_config(body, defaults.thinking);
  request.omit_thinking = thinking.omitted;
  if (report.failed()) {
    return;
  }
  ChatHistory history = normalise_turns(std::move(turns), true);
  request.chat.continuation = std::move(history.continuation);
  if (request.chat.continuation) {
    // The answer goes on with the given text, after the given reasoning or an empty one.
    thinking.enabled = !request.chat.continuation->reasoning.empty();
  }
  request.chat.template_variables = to_json(make_variables(history.turns, thinking.enabled));
}

void refuse_tools(JsonFields& body) {
  if (const json::array* tools = body.array("tools"); tools != nullptr && !tools->empty()) {
    body.reject("tools", "this version does not return tool calls");
  }
}

}  // namespace

ApiResult<MessagesRequest> parse_messages_request(std::string body_text,
                                                  const MessagesDefaults& defaults,
                                                  const RequestLimits& limits) {
  const auto object = parse_json_object(std::move(body_text));
  if (!object) {
    return std::unexpected(object.error());
  }
  FieldReport report;
  JsonFields body(*object, "", report);
  MessagesRequest request;
  GenerationFields& generation = request.chat.generation;
  generation = read_generation_fields(body, limits);
  if (body.has("n")) {
    report.ignore("n");  // no field of this API
  }
  generation.choices = 1;
  generation.tokens_max = read_tokens_max(body, {"max_tokens"});
  for (std::string& text : read_stop_texts(body, "stop_sequences")) {
    generation.stop.push_back(std::move(text));
  }
  refuse_tools(body);
  read_conversation(body, defaults, request);
  body.ignore_rest();
  if (report.failed()) {
    return std::unexpected(report.error());
  }
  request.chat.ignored = report.take_ignored();
  return request;
}

}  // namespace sluice
