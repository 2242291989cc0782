// See messages_request.h. What other dialects have as well is said in the form of chat
// completions and read by the same readers: tools, thinking and its budget, the format of the
// answer.
#include "api/anthropic/messages_request.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "api/anthropic/messages_history.h"
#include "api/anthropic/messages_tools.h"
#include "api/chat/chat_prompt.h"
#include "api/fields/thinking_fields.h"
#include "api/tools/tool_fields.h"

namespace sluice {
namespace {

namespace json = boost::json;

bool is_effort(std::string_view word) {
  constexpr std::string_view kWords[] = {"none", "minimal", "low", "medium",
                                         "high", "xhigh",   "max"};
  return std::ranges::find(kWords, word) != std::end(kWords);
}

// `thinking` decides whether the model thinks; the effort only how long.
ThinkingFields read_thinking_config(JsonFields& body, JsonFields* output_config,
                                    const ThinkingDefaults& defaults, MessagesRequest& request) {
  json::object chat;
  bool enabled = defaults.enabled;
  if (auto config = body.object("thinking")) {
    std::string type = config->string("type").value_or("");
    type = type == "between_tools" ? "adaptive" : type;
    enabled = type != "disabled";
    request.omit_thinking = config->string("display").value_or("") == "omitted";
    chat["thinking"] = json::object{{"type", type}};
    if (const json::value* budget = config->find("budget_tokens"); budget != nullptr && enabled) {
      chat["thinking"].get_object()["budget_tokens"] = *budget;
    }
    config->ignore_rest();
  }
  const auto effort = output_config != nullptr ? output_config->string("effort") : std::nullopt;
  if (effort && enabled) {
    chat["reasoning_effort"] = is_effort(*effort) ? *effort : "high";
  }
  JsonFields fields(chat, "", body.report());
  ThinkingFields thinking = read_thinking(fields, nullptr, defaults);
  if (thinking.tokens_max >= 0 && request.chat.generation.tokens_max) {
    const std::int64_t room = std::max<std::int64_t>(*request.chat.generation.tokens_max - 1, 1);
    thinking.tokens_max = std::min(thinking.tokens_max, room);
  }
  return thinking;
}

void read_output_format(JsonFields& body, JsonFields* output_config, const RequestLimits& limits,
                        GenerationFields& generation) {
  auto format = output_config != nullptr ? output_config->object("format") : std::nullopt;
  if (!format) {
    format = body.object("output_format");
  }
  if (format) {
    generation.constraint.grammar = read_text_format(*format, limits);
    format->ignore_rest();
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

void read_conversation(JsonFields& body, ThinkingFields thinking,
                       const ConversationDefaults& defaults, const RequestLimits& limits,
                       ChatRequest& request) {
  FieldReport& report = body.report();
  const AnthropicTools tools = read_anthropic_tools(body);
  std::vector<ChatTurn> turns = read_turns(body, tools);
  if (report.failed()) {
    return;
  }
  JsonFields chat_tools(tools.chat_fields, "", report);
  ToolFields tool_fields = read_tool_fields(chat_tools, limits);
  take_call_grammar(tool_fields.use, request.generation.constraint, report);
  request.tool_use = std::move(tool_fields.use);

  ChatHistory history = normalise_turns(
      std::move(turns), {.continue_last = true, .hoist_system = defaults.hoist_system});
  request.continuation = std::move(history.continuation);
  if (request.continuation) {
    // The answer goes on with the given text, after the given reasoning or an empty one.
    thinking.enabled = !request.continuation->reasoning.empty();
  }
  json::object variables;
  add_decisions({.thinking = thinking,
                 .tools = tool_fields.prompt_tools,
                 .preserve_thinking = defaults.preserve_thinking},
                variables);
  request.history_calls = history_calls(history.turns);
  set_template_variables(std::move(variables), history.turns, request);
}

// Conversations are not held between requests. A client that is told so in these words sends the
// whole conversation again, as it does when a server has lost one.
void read_thread(JsonFields& body) {
  auto thread = body.object("thread");
  if (!thread) {
    return;
  }
  FieldReport& report = body.report();
  const std::string type = required_string(*thread, "type");
  if (type == "create") {
    report.ignore("thread");
  } else if (type == "continue") {
    report.fail(ApiErrorKind::thread_not_found,
                fmt::format("thread.previous_message_id is '{}': this server holds no "
                            "conversations, send the whole one",
                            thread->string("previous_message_id").value_or("").substr(0, 64)),
                "thread");
  } else {
    report.fail(ApiErrorKind::invalid_value,
                fmt::format("thread.type is '{}', want create or continue", type.substr(0, 64)),
                "thread.type");
  }
}

MessagesRequest read_messages_request(JsonFields& body, const MessagesDefaults& defaults,
                                      const RequestLimits& limits) {
  MessagesRequest request;
  read_thread(body);
  GenerationFields& generation = request.chat.generation;
  generation = read_generation_fields(body, limits);
  if (body.has("n")) {
    body.report().ignore("n");  // no field of this API
  }
  generation.choices = 1;
  generation.tokens_max = read_tokens_max(body, {"max_tokens"});
  for (std::string& text : read_stop_texts(body, "stop_sequences")) {
    generation.stop.push_back(std::move(text));
  }
  auto output_config = body.object("output_config");
  JsonFields* config = output_config ? &*output_config : nullptr;
  read_output_format(body, config, limits, generation);
  const ThinkingFields thinking = read_thinking_config(body, config, defaults.thinking, request);
  generation.reasoning_tokens_max = thinking.tokens_max;
  read_conversation(body, thinking, defaults.conversation, limits, request.chat);
  if (config != nullptr) {
    config->ignore_rest();
  }
  return request;
}

}  // namespace

ApiResult<MessagesRequest> parse_messages_request(std::string body_text,
                                                  const MessagesDefaults& defaults,
                                                  const RequestLimits& limits) {
  MessagesRequest request;
  auto ignored = read_body(std::move(body_text), [&](JsonFields& body) {
    request = read_messages_request(body, defaults, limits);
  });
  if (!ignored) {
    return std::unexpected(std::move(ignored).error());
  }
  request.chat.ignored = std::move(*ignored);
  return request;
}

}  // namespace sluice
