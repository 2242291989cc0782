#include "api/anthropic/messages_reply.h"

#include <algorithm>
#include <utility>

#include "api/anthropic/messages_tools.h"
#include "api/fields/json_text.h"
#include "api/tools/call_arguments.h"

namespace sluice {
namespace {

namespace json = boost::json;

SseEvent event_of(json::object data) {
  return {std::string(data.at("type").as_string()), to_json(data)};
}

json::object tool_use_block(const std::string& call_id, const std::string& name) {
  return {{"type", "tool_use"},
          {"id", tool_use_id_of(call_id)},
          {"name", name},
          {"input", json::object{}}};
}

}  // namespace

MessagesReply::MessagesReply(ReplyHead head, MessagesReplyOptions options)
    : head_(std::move(head)), options_(options) {}

std::optional<SseEvent> MessagesReply::ping() const {
  return event_of({{"type", "ping"}});
}

std::vector<SseEvent> MessagesReply::begin(const AnswerUsage& usage) {
  return {event_of({{"type", "message_start"}, {"message", message({}, usage)}})};
}

std::vector<SseEvent> MessagesReply::delta(std::size_t, const AnswerDelta& delta,
                                           std::span<const TokenId>, const AnswerUsage&) {
  std::vector<SseEvent> events;
  if (delta.call) {
    close_block(events);
    open_block(delta.part, tool_use_block(delta.call->id, delta.call->name), events);
  }
  if (delta.text.empty()) {
    return events;
  }
  if (delta.part == AnswerPart::call) {
    json::object event = block_event("content_block_delta");
    event["delta"] = json::object{{"type", "input_json_delta"}, {"partial_json", delta.text}};
    events.push_back(event_of(std::move(event)));
    return events;
  }
  const bool thinking = delta.part == AnswerPart::reasoning;
  if (open_part_ != delta.part) {
    close_block(events);
    open_block(delta.part,
               thinking ? json::object{{"type", "thinking"}, {"thinking", ""}, {"signature", ""}}
                        : json::object{{"type", "text"}, {"text", ""}},
               events);
  }
  if (thinking && options_.omit_thinking) {
    return events;
  }
  json::object event = block_event("content_block_delta");
  event["delta"] = thinking ? json::object{{"type", "thinking_delta"}, {"thinking", delta.text}}
                            : json::object{{"type", "text_delta"}, {"text", delta.text}};
  events.push_back(event_of(std::move(event)));
  return events;
}

std::vector<SseEvent> MessagesReply::end(std::size_t, const AnswerEnd& end,
                                         std::span<const TokenId>, const AnswerUsage& usage) {
  std::vector<SseEvent> events;
  close_block(events);
  events.push_back(event_of(
      {{"type", "message_delta"}, {"delta", stop_fields(end)}, {"usage", this->usage(usage)}}));
  return events;
}

std::vector<SseEvent> MessagesReply::finish(const AnswerUsage&) {
  return {event_of({{"type", "message_stop"}})};
}

std::vector<SseEvent> MessagesReply::fail(const std::string& error_json) {
  return {{"error", error_json}};
}

std::string MessagesReply::whole(std::span<const ChoiceAnswer> choices, const AnswerUsage& usage) {
  const ChoiceAnswer& answer = choices.front();
  json::object reply = message(content_blocks(answer), usage);
  for (const auto& [key, value] : stop_fields(answer.end)) {
    reply[key] = value;
  }
  return to_json(reply);
}

void MessagesReply::open_block(AnswerPart part, json::object block, std::vector<SseEvent>& events) {
  json::object event = block_event("content_block_start");
  event["content_block"] = std::move(block);
  events.push_back(event_of(std::move(event)));
  open_part_ = part;
}

void MessagesReply::close_block(std::vector<SseEvent>& events) {
  if (!open_part_) {
    return;
  }
  if (*open_part_ == AnswerPart::reasoning) {
    json::object event = block_event("content_block_delta");
    event["delta"] = json::object{{"type", "signature_delta"}, {"signature", head_.id}};
    events.push_back(event_of(std::move(event)));
  }
  events.push_back(event_of(block_event("content_block_stop")));
  open_part_.reset();
  ++block_index_;
}

json::object MessagesReply::block_event(const char* type) const {
  return {{"type", type}, {"index", block_index_}};
}

json::object MessagesReply::message(json::array content, const AnswerUsage& usage) const {
  return {{"id", head_.id},
          {"type", "message"},
          {"role", "assistant"},
          {"model", head_.model},
          {"content", std::move(content)},
          {"stop_reason", nullptr},
          {"stop_sequence", nullptr},
          {"usage", this->usage(usage)}};
}

// The three input counts are disjoint; together they are the prompt.
json::object MessagesReply::usage(const AnswerUsage& usage) const {
  const std::int64_t created =
      std::max<std::int64_t>(options_.marked_tokens - usage.cached_tokens, 0);
  return {{"input_tokens", usage.prompt_tokens - usage.cached_tokens - created},
          {"cache_creation_input_tokens", created},
          {"cache_read_input_tokens", usage.cached_tokens},
          {"cache_creation",
           json::object{{"ephemeral_5m_input_tokens", created}, {"ephemeral_1h_input_tokens", 0}}},
          {"output_tokens", usage.completion_tokens},
          {"output_tokens_details", json::object{{"thinking_tokens", usage.reasoning_tokens}}},
          {"service_tier", "standard"}};
}

json::object MessagesReply::stop_fields(const AnswerEnd& end) const {
  if (end.reason == FinishReason::length) {
    return {{"stop_reason",
             options_.length_is_context ? "model_context_window_exceeded" : "max_tokens"},
            {"stop_sequence", nullptr}};
  }
  if (end.has_complete_call) {
    return {{"stop_reason", "tool_use"}, {"stop_sequence", nullptr}};
  }
  if (end.stop_text) {
    return {{"stop_reason", "stop_sequence"}, {"stop_sequence", *end.stop_text}};
  }
  return {{"stop_reason", "end_turn"}, {"stop_sequence", nullptr}};
}

json::array MessagesReply::content_blocks(const ChoiceAnswer& answer) const {
  json::array blocks;
  for (const AnswerDelta& part : answer.parts) {
    if (part.call) {
      json::object block = tool_use_block(part.call->id, part.call->name);
      block["input"] = tool_call_arguments(json::string(part.text));  // whole parameters only
      blocks.push_back(std::move(block));
    } else if (part.part == AnswerPart::reasoning) {
      blocks.push_back(thinking_block(part.text));
    } else {
      blocks.push_back(json::object{{"type", "text"}, {"text", part.text}});
    }
  }
  return blocks;
}

// Nobody reads the signature; clients want it not to be empty, and send it back.
json::object MessagesReply::thinking_block(const std::string& text) const {
  return {{"type", "thinking"},
          {"thinking", options_.omit_thinking ? std::string() : text},
          {"signature", head_.id}};
}

}  // namespace sluice
