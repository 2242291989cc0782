// See anthropic_messages.h. What other dialects have as well is said in the form of chat
// completions and read by the same readers: sampling, tools.
#include "api/anthropic_messages.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string_view>
#include <utility>

#include "api/anthropic_history.h"
#include "api/anthropic_tools.h"
#include "api/chat_prompt.h"
#include "api/constraint_fields.h"
#include "api/tool_fields.h"

namespace sluice {
namespace {

namespace json = boost::json;

// Efforts are not kept to yet: the answer then thinks as long as it likes.
bool read_thinking_config(JsonFields& body, bool enabled_by_default, MessagesRequest& request) {
  auto config = body.object("thinking");
  if (!config) {
    return enabled_by_default;
  }
  const std::string type = config->string("type").value_or("");
  if (type != "enabled" && type != "adaptive" && type != "between_tools" && type != "disabled") {
    body.report().fail(ApiErrorKind::invalid_value,
                       fmt::format("{} is '{}', want enabled, adaptive or disabled",
                                   config->path_of("type"), type.substr(0, 64)),
                       config->path_of("type"));
  }
  constexpr std::int64_t kBudgetMin = 1;
  if (const auto budget = config->integer("budget_tokens", {kBudgetMin, kTokensMaxMax})) {
    // A budget as long as the answer would leave no room for one.
    GenerationFields& generation = request.chat.generation;
    const std::int64_t most =
        std::max(generation.tokens_max.value_or(kTokensMaxMax) - 1, kBudgetMin);
    generation.reasoning_tokens_max = std::min(*budget, most);
  }
  request.omit_thinking = config->string("display").value_or("") == "omitted";
  config->ignore_rest();
  return type != "disabled";
}

// output_config.format, or the older output_format.
void read_output_format(JsonFields& body, const RequestLimits& limits, ConstraintFields& fields) {
  const auto take = [&](std::optional<JsonFields> format) {
    if (auto grammar = format ? read_text_format(*format, limits) : nullptr) {
      fields.grammar = std::move(grammar);
    }
  };
  take(body.object("output_format"));
  if (auto config = body.object("output_config")) {
    take(config->object("format"));
    config->ignore_rest();
  }
}

// The system text first, then the messages.
std::vector<ChatTurn> read_turns(JsonFields& body, const AnthropicTools& tools) {
  FieldReport& report = body.report();
  const BlockContext context{tools.texts, report};
  std::vector<ChatTurn> turns;
  if (const json::value* system = body.find("system")) {
    turns.push_back(read_anthropic_system(*system, "system", context));
    if (turns.back().text.empty()) {
      turns.pop_back();
    } else if (tools.marked) {  // tools come right before the system text
      turns.back().cache_marks.insert(turns.back().cache_marks.begin(), 0);
    }
  }
  if (const json::value* messages = body.find("messages")) {
    for (ChatTurn& turn : read_anthropic_messages(*messages, "messages", context)) {
      turns.push_back(std::move(turn));
    }
  } else {
    report.fail(ApiErrorKind::missing_parameter, "messages is required", "messages");
  }
  if (!turns.empty()) {
    mark_end(turns.back(), body.has("cache_control"));
  }
  return turns;
}

void read_conversation(JsonFields& body, bool thinking, ChatRequest& request) {
  FieldReport& report = body.report();
  const AnthropicTools tools = read_anthropic_tools(body);
  std::vector<ChatTurn> turns = read_turns(body, tools);
  if (report.failed()) {
    return;
  }
  JsonFields chat_tools(tools.chat_fields, "", report);
  ToolFields tool_fields = read_tool_fields(chat_tools);
  request.tool_use = std::move(tool_fields.use);

  ChatHistory history = normalise_turns(std::move(turns), true);
  request.continuation = std::move(history.continuation);
  if (request.continuation) {
    // The answer goes on with the given text, after the given reasoning or an empty one.
    thinking = !request.continuation->reasoning.empty();
  }
  json::object variables{{"add_generation_prompt", true}, {"enable_thinking", thinking}};
  if (!tool_fields.prompt_tools.empty()) {
    variables["tools"] = std::move(tool_fields.prompt_tools);
  }
  request.history_calls = history_calls(history.turns);
  set_template_variables(std::move(variables), history.turns, request);
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
  read_output_format(body, limits, generation.constraint);
  const bool thinking = read_thinking_config(body, defaults.thinking, request);
  read_conversation(body, thinking, request.chat);
  body.ignore_rest();
  if (report.failed()) {
    return std::unexpected(report.error());
  }
  request.chat.ignored = report.take_ignored();
  return request;
}

}  // namespace sluice
