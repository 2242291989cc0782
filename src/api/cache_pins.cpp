#include "api/cache_pins.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <boost/json/array.hpp>
#include <string_view>
#include <utility>

#include "api/fields/generation_fields.h"
#include "api/fields/json_text.h"

namespace sluice {
namespace {

namespace json = boost::json;

// The one field that says what to pin; empty after an error.
std::string_view find_source(JsonFields& body) {
  constexpr std::array<std::string_view, 4> kSources{"messages", "system", "prompt", "token_ids"};
  std::string_view source;
  for (const std::string_view field : kSources) {
    if (!body.has(field)) {
      continue;
    }
    if (!source.empty()) {
      body.report().fail(ApiErrorKind::invalid_value,
                         fmt::format("{} and {} are both given, want one of them", source, field),
                         std::string(field));
      return {};
    }
    source = field;
  }
  if (source.empty()) {
    body.report().fail(ApiErrorKind::missing_parameter,
                       "one of messages, system, prompt and token_ids is required", "messages");
  }
  return source;
}

void read_label(JsonFields& body, CachePinRequest& request) {
  request.name = body.string("name").value_or("");
  if (request.name.size() > kPinNameBytesMax) {
    body.report().fail(
        ApiErrorKind::invalid_value,
        fmt::format("name has {} bytes, want at most {}", request.name.size(), kPinNameBytesMax),
        "name");
  }
  request.seconds = body.number("ttl_s", {0.0, kPinSecondsMax, true});
}

void read_plain(JsonFields& body, const RequestLimits& limits, CachePinRequest& request) {
  for (const std::string_view field : {"tools", "chat_template_kwargs"}) {
    body.reject(field, "it goes with messages or system");
  }
  if (const json::array* ids = request.source == "token_ids" ? body.array("token_ids") : nullptr) {
    request.prefix = read_token_ids(*ids, "token_ids", limits, body.report());
  } else {
    request.prefix = body.string("prompt").value_or("");
  }
  request.parse_special = body.boolean("parse_special").value_or(true);
  request.cache_salt = read_cache_salt(body);
  body.ignore_rest();
}

bool answer_follows(const json::value& message) {
  const json::object* object = message.if_object();
  const json::value* role = object != nullptr ? object->if_contains("role") : nullptr;
  constexpr std::array<std::string_view, 3> kRoles{"user", "tool", "function"};
  return role != nullptr && role->is_string() &&
         std::ranges::find(kRoles, std::string_view(role->get_string())) != kRoles.end();
}

// Bodies of chat requests that begin with this conversation. Two when it is only known where they
// begin by looking where they part: templates write nothing after the last message that they would
// not write elsewhere, and some refuse a conversation in which no user speaks.
std::vector<json::object> conversations_of(const json::object& body, std::string_view source) {
  json::object chat = body;
  if (source == "system") {
    const json::value system = chat["system"];
    chat.erase("system");
    chat["messages"] = json::array{json::object{{"role", "system"}, {"content", system}}};
  }
  const json::array* messages = chat["messages"].if_array();
  if (messages == nullptr || messages->empty() || answer_follows(messages->back())) {
    return {std::move(chat)};
  }
  std::vector<json::object> chats(2, chat);
  constexpr std::array<std::string_view, 2> kTexts{"a", "1"};  // nothing in common
  for (std::size_t i = 0; i < chats.size(); ++i) {
    chats[i]["messages"].get_array().push_back(
        json::object{{"role", "user"}, {"content", json::string(kTexts[i])}});
  }
  return chats;
}

ChatRequest read_conversation(const json::object& body, const ChatDefaults& defaults,
                              const RequestLimits& limits, FieldReport& report) {
  JsonFields fields(body, "", report);
  CachePinRequest label;
  read_label(fields, label);  // not among the ignored
  if (fields.boolean("continue_final_message").value_or(false)) {
    fields.reject("continue_final_message", "the end of a message is pinned with it");
  }
  ChatDefaults pinned = defaults;
  pinned.add_generation_prompt = false;
  ChatRequest chat = read_chat_request(fields, pinned, limits);
  fields.ignore_rest();
  return chat;
}

void read_conversations(const json::object& body, const ChatDefaults& defaults,
                        const RequestLimits& limits, FieldReport& report,
                        CachePinRequest& request) {
  std::vector<ChatRequest> chats;
  for (const json::object& conversation : conversations_of(body, request.source)) {
    FieldReport repeated;
    chats.push_back(
        read_conversation(conversation, defaults, limits, chats.empty() ? report : repeated));
    if (report.failed()) {
      return;
    }
  }
  request.cache_salt = chats.front().generation.cache_salt;
  request.prefix = std::move(chats);
}

json::value or_null(const std::optional<std::int64_t>& value) {
  return value ? json::value(*value) : json::value(nullptr);
}

}  // namespace

ApiResult<CachePinRequest> parse_cache_pin_request(std::string body_text,
                                                   const ChatDefaults& defaults,
                                                   const RequestLimits& limits) {
  const auto object = parse_json_object(std::move(body_text));
  if (!object) {
    return std::unexpected(object.error());
  }
  FieldReport report;
  JsonFields body(*object, "", report);
  CachePinRequest request;
  request.source = find_source(body);
  read_label(body, request);
  if (request.source == "system") {
    body.string("system");
  }
  if (report.failed()) {
    return std::unexpected(report.error());
  }
  if (request.source == "messages" || request.source == "system") {
    read_conversations(*object, defaults, limits, report, request);
  } else {
    read_plain(body, limits, request);
  }
  if (report.failed()) {
    return std::unexpected(report.error());
  }
  request.ignored = report.take_ignored();
  return request;
}

json::object pin_object(const PinReport& pin) {
  return json::object{{"id", pin.id},
                      {"name", pin.name},
                      {"tokens", pin.tokens},
                      {"bytes", pin.bytes},
                      {"hits", pin.hits},
                      {"last_used", or_null(pin.last_used)},
                      {"expires_at", or_null(pin.expires_at)}};
}

std::string pin_json(const PinReport& pin) {
  return to_json(pin_object(pin));
}

std::string pin_list_json(std::span<const PinReport> pins) {
  json::array data;
  for (const PinReport& pin : pins) {
    data.push_back(pin_object(pin));
  }
  return to_json(json::object{{"object", "list"}, {"data", std::move(data)}});
}

std::string deleted_pin_json(const std::string& id) {
  return to_json(json::object{{"id", id}, {"deleted", true}});
}

}  // namespace sluice
