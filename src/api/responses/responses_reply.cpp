// See responses_reply.h. Ids of items are made of the response's own, so that a stored item
// is found by its id alone.
#include "api/responses/responses_reply.h"

#include <fmt/format.h>

#include <array>
#include <utility>

#include "api/fields/json_text.h"
#include "api/openai/openai_reply.h"
#include "api/responses/reasoning_seal.h"
#include "api/responses/response_ids.h"

namespace sluice {
namespace {

namespace json = boost::json;

// The words of the API for each ItemKind.
struct KindWords {
  std::string_view id_prefix;
  std::string_view type;
  std::string_view text_event;  // "<text_event>.delta", "<text_event>.done"
};
constexpr std::array<KindWords, 4> kWords{
    {{"rs_", "reasoning", "response.reasoning_text"},
     {"msg_", "message", "response.output_text"},
     {"fc_", "function_call", "response.function_call_arguments"},
     {"ctc_", "custom_tool_call", "response.custom_tool_call_input"}}};
constexpr std::string_view kSummaryText = "response.reasoning_summary_text";

constexpr const char* kInProgress = "in_progress";
constexpr const char* kCompleted = "completed";
constexpr const char* kIncomplete = "incomplete";
constexpr const char* kFailed = "failed";
constexpr const char* kCancelled = "cancelled";

json::string json_text(std::string_view text) {
  return json::string(text.data(), text.size());
}

json::object response_usage_json(const AnswerUsage& usage) {
  return json::object{
      {"input_tokens", usage.prompt_tokens},
      {"input_tokens_details", json::object{{"cached_tokens", usage.cached_tokens},
                                            {"cache_write_tokens", 0},
                                            {"image_tokens", usage.image_tokens}}},
      {"output_tokens", usage.completion_tokens},
      {"output_tokens_details", json::object{{"reasoning_tokens", usage.reasoning_tokens}}},
      {"total_tokens", usage.prompt_tokens + usage.completion_tokens}};
}

// The message of an OpenAI error object.
std::string message_of(const std::string& error_json) {
  const auto error = parse_json(error_json);
  const json::value* object =
      error && error->is_object() ? error->get_object().if_contains("error") : nullptr;
  const json::value* message = object != nullptr && object->is_object()
                                   ? object->get_object().if_contains("message")
                                   : nullptr;
  return message != nullptr && message->is_string() ? std::string(message->get_string())
                                                    : std::string("internal error");
}

}  // namespace

ResponseReply::ResponseReply(ReplyHead head, ResponseReplyOptions options, TokenBytes token_bytes)
    : head_(std::move(head)), options_(std::move(options)), token_bytes_(std::move(token_bytes)) {}

std::vector<SseEvent> ResponseReply::begin(const AnswerUsage&) {
  Events events;
  push(json::object{{"type", "response.created"}, {"response", response_json(kInProgress)}},
       events);
  push(json::object{{"type", "response.in_progress"}, {"response", response_json(kInProgress)}},
       events);
  return events;
}

std::vector<SseEvent> ResponseReply::delta(std::size_t, const AnswerDelta& delta,
                                           std::span<const TokenId>, const AnswerUsage&) {
  Events events;
  if (delta.part == AnswerPart::call) {
    if (delta.call) {
      close_item(false, events);
      open_call(*delta.call, events);
    }
    add_text(delta.text, {}, events);
    return events;
  }
  const bool reasoning = delta.part == AnswerPart::reasoning;
  const ItemKind kind = reasoning ? ItemKind::reasoning : ItemKind::message;
  // Tokens without text open nothing.
  const bool says = !delta.text.empty() || (!delta.tokens.empty() && open_ && open_->kind == kind);
  if (!says || (reasoning && !options_.include_reasoning)) {
    return events;
  }
  if (!open_ || open_->kind != kind) {
    close_item(false, events);
    open_item(kind, events);
  }
  add_text(delta.text, delta.tokens, events);
  return events;
}

std::vector<SseEvent> ResponseReply::end(std::size_t, const AnswerEnd& end,
                                         std::span<const TokenId>, const AnswerUsage&) {
  Events events;
  cut_ = end.reason == FinishReason::length;
  cancelled_ = end.reason == FinishReason::cancelled;
  close_item(cut_ || cancelled_, events);
  return events;
}

std::vector<SseEvent> ResponseReply::finish(const AnswerUsage& usage) {
  return terminal(cut_ || cancelled_ ? "response.incomplete" : "response.completed",
                  ended_response(usage));
}

std::vector<SseEvent> ResponseReply::fail(const std::string& error_json) {
  Events events;
  close_item(true, events);
  json::object response = response_json(kFailed);
  response["error"] = json::object{{"code", "server_error"}, {"message", message_of(error_json)}};
  if (options_.on_final) {
    options_.on_final(response);
  }
  for (SseEvent& event : terminal("response.failed", std::move(response))) {
    events.push_back(std::move(event));
  }
  return events;
}

std::string ResponseReply::whole(std::span<const ChoiceAnswer> choices, const AnswerUsage& usage) {
  const ChoiceAnswer& answer = choices.front();
  for (const AnswerDelta& part : answer.parts) {
    delta(0, part, {}, usage);
  }
  end(0, answer.end, {}, usage);
  return to_json(ended_response(usage));
}

std::string ResponseReply::in_progress_json() const {
  return to_json(response_json(kInProgress));
}

void ResponseReply::open_item(ItemKind kind, Events& events) {
  start_item({.kind = kind}, events);
  open_part(events);
}

void ResponseReply::open_call(const CallHead& head, Events& events) {
  const auto known = options_.tool_targets.find(head.name);
  const ToolTarget target =
      known != options_.tool_targets.end() ? known->second : ToolTarget{.name = head.name};
  const ItemKind kind = target.custom ? ItemKind::custom_call : ItemKind::function_call;
  start_item({.kind = kind, .call_id = head.id, .target = target}, events);
}

void ResponseReply::start_item(OpenItem item, Events& events) {
  const std::string_view prefix = kWords[static_cast<std::size_t>(item.kind)].id_prefix;
  item.id = output_item_id(prefix, head_.id, output_.size());
  open_ = std::move(item);
  push(json::object{{"type", "response.output_item.added"},
                    {"output_index", output_.size()},
                    {"item", item_json(kInProgress)}},
       events);
}

// Messages and reasoning have one part each.
void ResponseReply::open_part(Events& events) {
  const bool summary = open_->kind == ItemKind::reasoning && options_.summarise_reasoning;
  json::object event = event_of_item(summary ? "response.reasoning_summary_part.added"
                                             : "response.content_part.added");
  event[summary ? "summary_index" : "content_index"] = 0;
  event["part"] = part_json(false);
  push(std::move(event), events);
}

void ResponseReply::add_text(std::string_view text, std::span<const TokenEvent> tokens,
                             Events& events) {
  const bool custom = open_->kind == ItemKind::custom_call;
  if (custom) {
    open_->arguments += text;
  }
  const std::string piece = custom ? open_->input.append(text) : std::string(text);
  const bool has_logprobs =
      open_->kind == ItemKind::message && options_.logprobs && !tokens.empty();
  if (piece.empty() && !has_logprobs) {
    return;
  }
  open_->text += piece;
  const bool summary = open_->kind == ItemKind::reasoning && options_.summarise_reasoning;
  const std::string_view name =
      summary ? kSummaryText : kWords[static_cast<std::size_t>(open_->kind)].text_event;
  json::object event = event_of_item(fmt::format("{}.delta", name));
  if (open_->kind == ItemKind::reasoning || open_->kind == ItemKind::message) {
    event[summary ? "summary_index" : "content_index"] = 0;
  }
  event["delta"] = json_text(piece);
  if (open_->kind == ItemKind::message) {
    json::array logprobs =
        options_.logprobs ? token_logprobs_json(tokens, token_bytes_) : json::array();
    open_->logprobs.insert(open_->logprobs.end(), logprobs.begin(), logprobs.end());
    event["logprobs"] = std::move(logprobs);
  }
  push(std::move(event), events);
}

void ResponseReply::close_item(bool cut, Events& events) {
  if (!open_) {
    return;
  }
  const bool is_call =
      open_->kind == ItemKind::function_call || open_->kind == ItemKind::custom_call;
  const bool incomplete = cut && (!is_call || open_call_is_cut());
  if (open_->kind == ItemKind::custom_call) {
    const std::string rest = open_->input.finish();
    if (!rest.empty()) {
      open_->text += rest;
      json::object event = event_of_item("response.custom_tool_call_input.delta");
      event["delta"] = json_text(rest);
      push(std::move(event), events);
    }
  }
  close_part(events);
  json::object item = item_json(incomplete ? kIncomplete : kCompleted);
  if (open_->kind == ItemKind::reasoning && options_.seal_reasoning) {
    item["encrypted_content"] = json_text(seal_reasoning(open_->text));
  }
  push(
      json::object{
          {"type", "response.output_item.done"}, {"output_index", output_.size()}, {"item", item}},
      events);
  output_.push_back(std::move(item));
  open_.reset();
}

void ResponseReply::close_part(Events& events) {
  const bool summary = open_->kind == ItemKind::reasoning && options_.summarise_reasoning;
  const std::string_view name =
      summary ? kSummaryText : kWords[static_cast<std::size_t>(open_->kind)].text_event;
  json::object done = event_of_item(fmt::format("{}.done", name));
  if (open_->kind == ItemKind::function_call) {
    done["name"] = json_text(open_->target.name);
    done["arguments"] = json_text(open_->text);
    push(std::move(done), events);
    return;
  }
  if (open_->kind == ItemKind::custom_call) {
    done["input"] = json_text(open_->text);
    push(std::move(done), events);
    return;
  }
  const char* index = summary ? "summary_index" : "content_index";
  done[index] = 0;
  done["text"] = json_text(open_->text);
  if (open_->kind == ItemKind::message) {
    done["logprobs"] = open_->logprobs;
  }
  push(std::move(done), events);
  json::object part = event_of_item(summary ? "response.reasoning_summary_part.done"
                                            : "response.content_part.done");
  part[index] = 0;
  part["part"] = part_json(true);
  push(std::move(part), events);
}

// A limit may have cut the answer after the end of a call.
bool ResponseReply::open_call_is_cut() const {
  const bool custom = open_->kind == ItemKind::custom_call;
  const auto arguments = parse_json(custom ? open_->arguments : open_->text);
  return !arguments || !arguments->is_object();
}

json::object ResponseReply::item_json(const char* status) const {
  const OpenItem& open = *open_;
  const bool finished = status != kInProgress;
  json::object item{{"type", json_text(kWords[static_cast<std::size_t>(open.kind)].type)},
                    {"id", open.id}};
  switch (open.kind) {
    case ItemKind::reasoning: {
      json::array parts = finished ? json::array{part_json(true)} : json::array();
      item["summary"] = options_.summarise_reasoning ? parts : json::array();
      item["content"] = options_.summarise_reasoning ? json::array() : parts;
      item["encrypted_content"] = nullptr;
      break;
    }
    case ItemKind::message:
      item["role"] = "assistant";
      item["content"] = finished ? json::array{part_json(true)} : json::array();
      break;
    case ItemKind::function_call:
    case ItemKind::custom_call:
      item["call_id"] = open.call_id;
      if (!open.target.name_space.empty()) {
        item["namespace"] = open.target.name_space;
      }
      item["name"] = open.target.name;
      item[open.kind == ItemKind::custom_call ? "input" : "arguments"] = open.text;
      break;
  }
  item["status"] = status;
  return item;
}

json::object ResponseReply::part_json(bool with_text) const {
  const std::string text = with_text ? open_->text : std::string();
  if (open_->kind == ItemKind::reasoning) {
    return json::object{{"type", options_.summarise_reasoning ? "summary_text" : "reasoning_text"},
                        {"text", text}};
  }
  return json::object{{"type", "output_text"},
                      {"text", text},
                      {"annotations", json::array()},
                      {"logprobs", with_text ? open_->logprobs : json::array()}};
}

json::object ResponseReply::event_of_item(std::string_view type) const {
  return json::object{
      {"type", json_text(type)}, {"item_id", open_->id}, {"output_index", output_.size()}};
}

json::object ResponseReply::response_json(const char* status) const {
  const auto echo = [&](const char* key) { return options_.echo.at(key); };
  return json::object{{"id", head_.id},
                      {"object", "response"},
                      {"created_at", head_.created},
                      {"completed_at", nullptr},
                      {"status", status},
                      {"background", false},
                      {"error", nullptr},
                      {"incomplete_details", nullptr},
                      {"instructions", echo("instructions")},
                      {"model", head_.model},
                      {"output", output_},
                      {"parallel_tool_calls", echo("parallel_tool_calls")},
                      {"previous_response_id", echo("previous_response_id")},
                      {"reasoning", echo("reasoning")},
                      {"store", echo("store")},
                      {"temperature", options_.temperature},
                      {"text", echo("text")},
                      {"tool_choice", echo("tool_choice")},
                      {"tools", echo("tools")},
                      {"top_p", options_.top_p},
                      {"truncation", "disabled"},
                      {"max_output_tokens", echo("max_output_tokens")},
                      {"metadata", echo("metadata")},
                      {"usage", nullptr}};
}

json::object ResponseReply::ended_response(const AnswerUsage& usage) {
  json::object response =
      response_json(cancelled_ ? kCancelled : (cut_ ? kIncomplete : kCompleted));
  if (cut_) {
    response["incomplete_details"] = json::object{{"reason", "max_output_tokens"}};
  } else if (!cancelled_) {
    response["completed_at"] = options_.now();
  }
  response["usage"] = response_usage_json(usage);
  if (options_.on_final) {
    options_.on_final(response);
  }
  return response;
}

void ResponseReply::push(json::object event, Events& events) {
  event["sequence_number"] = sequence_number_++;
  events.push_back({std::string(event.at("type").get_string()), to_json(event)});
}

std::vector<SseEvent> ResponseReply::terminal(std::string_view type, json::object response) {
  Events events;
  push(json::object{{"type", json_text(type)}, {"response", std::move(response)}}, events);
  return events;
}

}  // namespace sluice
