// POST /v1/chat/completions: the request as native types.
#pragma once

#include <boost/json/object.hpp>
#include <optional>
#include <string>
#include <vector>

#include "api/api_error.h"
#include "api/chat/chat_history.h"
#include "api/fields/generation_fields.h"
#include "api/fields/thinking_fields.h"
#include "api/tools/tool_fields.h"

namespace sluice {

// Where reasoning goes in a reply.
enum class ReasoningFormat {
  both,               // reasoning_content and reasoning, equal
  reasoning_content,  // one key only
  reasoning,          // one key only
  inline_tags,        // <think>...</think> in content
};

// Whether templates that know `preserve_thinking` keep the reasoning of earlier turns.
enum class PreserveThinking {
  as_template,  // the template decides
  with_tools,   // yes, where tools are declared: agents come back turn after turn
  always,
};

// What all conversations share of what holds when the request does not say.
struct ConversationDefaults {
  PreserveThinking preserve_thinking = PreserveThinking::as_template;
  bool hoist_system = false;  // HistoryOptions
};

// What holds when the request does not say.
struct ChatDefaults {
  ThinkingDefaults thinking = {};
  ConversationDefaults conversation = {};
  ReasoningFormat reasoning_format = ReasoningFormat::both;
  bool add_generation_prompt = true;  // the prompt ends where an answer begins
};

struct ChatRequest {
  GenerationFields generation;
  std::string template_variables;  // JSON object: "messages", "tools", "enable_thinking", ...
  // The same with the texts of cache_marks.h in the messages; empty when nothing is marked.
  std::string marked_template_variables = {};
  // A template that the client brought, not compiled yet; none: the model's.
  std::optional<std::string> chat_template = {};
  std::vector<MediaSource> media = {};  // in the order in which the prompt shows them
  ToolUse tool_use;
  std::vector<HistoryCall> history_calls;
  std::optional<TurnContinuation> continuation;
  bool echo = false;  // the continued text is repeated at the head of the reply
  ReasoningFormat reasoning_format = ReasoningFormat::both;
  bool include_reasoning = true;
  bool names_service_tier = false;   // the reply names one as well
  std::vector<std::string> ignored;  // paths of fields without effect
};

// `body` is the raw body. Errors name the field.
ApiResult<ChatRequest> parse_chat_request(std::string body, const ChatDefaults& defaults,
                                          const RequestLimits& limits);

// The same of a body that is already parsed: other dialects are translated into it.
ApiResult<ChatRequest> parse_chat_request(const boost::json::object& body,
                                          const ChatDefaults& defaults,
                                          const RequestLimits& limits);

// The same of a body that has fields of its own beside those of a chat: neither errors nor ignored
// fields are taken out of the report.
ChatRequest read_chat_request(JsonFields& body, const ChatDefaults& defaults,
                              const RequestLimits& limits);

// "both", "reasoning_content", "reasoning" or "none".
std::optional<ReasoningFormat> parse_reasoning_format(std::string_view name);

}  // namespace sluice
