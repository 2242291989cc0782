// See chat_request.h. Fields that would change the answer and cannot be honoured are refused; all
// others that have no effect are reported back.
#include "api/openai/chat_request.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <string_view>
#include <utility>

#include "api/chat/chat_messages.h"
#include "api/chat/chat_prompt.h"
#include "api/fields/thinking_fields.h"
#include "text/chat_template.h"

namespace sluice {
namespace {

namespace json = boost::json;

void read_logprobs(JsonFields& body, GenerationFields& fields) {
  const bool wanted = body.boolean("logprobs").value_or(false);
  const auto top = body.integer("top_logprobs", {0, kLogprobsMax});
  if (wanted) {
    fields.logprobs = static_cast<std::int32_t>(top.value_or(0));
  } else if (top.value_or(0) > 0) {
    body.report().fail(ApiErrorKind::invalid_value, "top_logprobs needs logprobs to be true",
                       "top_logprobs");
  }
}

void refuse_unsupported(JsonFields& body) {
  body.reject("audio", "this model writes text only");
  if (const json::array* modalities = body.array("modalities")) {
    for (const json::value& modality : *modalities) {
      if (!modality.is_string() || modality.get_string() != "text") {
        body.reject("modalities", "this model writes text only");
      }
    }
  }
  body.reject("functions", "use tools");
  body.reject("function_call", "use tool_choice");
}

void read_chat_template(JsonFields& body, const RequestLimits& limits, ChatRequest& request) {
  if (!limits.client_templates) {
    body.reject("chat_template", "the template of the model is used");
    return;
  }
  request.chat_template = body.string("chat_template");
  if (request.chat_template && request.chat_template->size() > ChatTemplate::kSourceBytesMax) {
    body.report().fail(ApiErrorKind::invalid_value,
                       fmt::format("chat_template has {} bytes, want at most {}",
                                   request.chat_template->size(), ChatTemplate::kSourceBytesMax),
                       "chat_template");
  }
}

void read_reasoning_format(JsonFields& body, ChatRequest& request) {
  const auto name = body.string("reasoning_format");
  if (!name) {
    return;
  }
  if (const auto format = parse_reasoning_format(*name)) {
    request.reasoning_format = *format;
  } else {
    body.report().fail(
        ApiErrorKind::invalid_value,
        fmt::format("reasoning_format is '{}', want both, reasoning_content, reasoning or none",
                    name->substr(0, 64)),
        "reasoning_format");
  }
}

// Whether a client may set this variable of the template: an identifier, and none that the server
// or the template engine owns. *_token values count as the template's own control tokens
// (text/chat_template.h), so clients must not set those.
bool is_client_variable(std::string_view key) {
  constexpr std::string_view kReserved[] = {"messages",        "tools",     "add_generation_prompt",
                                            "raise_exception", "namespace", "range",
                                            "documents"};
  const auto is_word = [](char c) {
    return c == '_' || (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
  };
  const bool identifier = !key.empty() && !(key.front() >= '0' && key.front() <= '9') &&
                          std::ranges::all_of(key, is_word);
  return identifier && !key.ends_with("_token") &&
         std::ranges::find(kReserved, key) == std::end(kReserved);
}

// The template's view of the request: what the client may set, then what the server decides.
json::object make_variables(const json::object* kwargs, const PromptDecisions& decisions,
                            FieldReport& report) {
  json::object variables;
  if (kwargs != nullptr) {
    for (const auto& [key, value] : *kwargs) {
      if (is_client_variable(key)) {
        variables[key] = value;
      } else {
        report.ignore(fmt::format("chat_template_kwargs.{}", std::string_view(key)));
      }
    }
  }
  add_decisions(decisions, variables);
  return variables;
}

void read_messages_and_variables(JsonFields& body, const ChatDefaults& defaults,
                                 const RequestLimits& limits, ChatRequest& request) {
  FieldReport& report = body.report();
  std::vector<ChatTurn> turns;
  if (const json::value* messages = body.find("messages")) {
    turns = read_chat_turns(*messages, "messages", report);
  } else {
    report.fail(ApiErrorKind::missing_parameter, "messages is required", "messages");
  }

  const json::value* kwargs_value = body.find("chat_template_kwargs");
  auto kwargs = body.object("chat_template_kwargs");
  ThinkingFields thinking = read_thinking(body, kwargs ? &*kwargs : nullptr, defaults.thinking);
  request.include_reasoning = !thinking.excluded;
  request.generation.reasoning_tokens_max = thinking.tokens_max;

  const bool continue_last = body.boolean("continue_final_message").value_or(false);
  const auto add_prompt = body.boolean("add_generation_prompt");
  if (continue_last && add_prompt.value_or(false)) {
    report.fail(ApiErrorKind::invalid_value,
                "continue_final_message and add_generation_prompt are both true",
                "continue_final_message");
  }
  if (continue_last && !turns.empty() && turns.back().role != TurnRole::assistant) {
    report.fail(ApiErrorKind::invalid_value,
                "continue_final_message needs the last message to be the assistant's",
                "continue_final_message");
  }
  request.echo = body.boolean("echo").value_or(false);
  ToolFields tools = read_tool_fields(body, limits);
  take_call_grammar(tools.use, request.generation.constraint, report);
  request.tool_use = std::move(tools.use);
  if (report.failed()) {
    return;
  }

  ChatHistory history = normalise_turns(
      std::move(turns),
      {.continue_last = continue_last, .hoist_system = defaults.conversation.hoist_system});
  request.continuation = std::move(history.continuation);
  if (request.continuation) {
    // The prompt then goes on with the given reasoning, or after an empty one.
    thinking.enabled =
        request.continuation->reasoning_open || !request.continuation->reasoning.empty();
  }
  request.history_calls = history_calls(history.turns);
  const bool generation_prompt =
      request.continuation || add_prompt.value_or(defaults.add_generation_prompt);
  const PromptDecisions decisions{.generation_prompt = generation_prompt,
                                  .thinking = thinking,
                                  .tools = tools.prompt_tools,
                                  .preserve_thinking = defaults.conversation.preserve_thinking};
  set_template_variables(
      make_variables(kwargs ? &kwargs_value->get_object() : nullptr, decisions, report),
      history.turns, request);
}

}  // namespace

ApiResult<ChatRequest> parse_chat_request(std::string body_text, const ChatDefaults& defaults,
                                          const RequestLimits& limits) {
  const auto object = parse_json_object(std::move(body_text));
  if (!object) {
    return std::unexpected(object.error());
  }
  return parse_chat_request(*object, defaults, limits);
}

ApiResult<ChatRequest> parse_chat_request(const json::object& object, const ChatDefaults& defaults,
                                          const RequestLimits& limits) {
  ChatRequest request;
  auto ignored = read_body(
      object, [&](JsonFields& body) { request = read_chat_request(body, defaults, limits); });
  if (!ignored) {
    return std::unexpected(std::move(ignored).error());
  }
  request.ignored = std::move(*ignored);
  return request;
}

ChatRequest read_chat_request(JsonFields& body, const ChatDefaults& defaults,
                              const RequestLimits& limits) {
  ChatRequest request;
  request.reasoning_format = defaults.reasoning_format;
  request.generation = read_generation_fields(body, limits);
  request.generation.tokens_max = read_tokens_max(body, {"max_completion_tokens", "max_tokens"});
  read_logprobs(body, request.generation);
  refuse_unsupported(body);
  read_chat_template(body, limits, request);
  read_reasoning_format(body, request);
  request.names_service_tier = body.string("service_tier").has_value();
  read_messages_and_variables(body, defaults, limits, request);
  return request;
}

std::optional<ReasoningFormat> parse_reasoning_format(std::string_view name) {
  if (name == "both") {
    return ReasoningFormat::both;
  }
  if (name == "reasoning_content") {
    return ReasoningFormat::reasoning_content;
  }
  if (name == "reasoning") {
    return ReasoningFormat::reasoning;
  }
  if (name == "none") {
    return ReasoningFormat::inline_tags;
  }
  return std::nullopt;
}

}  // namespace sluice
