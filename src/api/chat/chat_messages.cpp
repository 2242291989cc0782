#include "api/chat/chat_messages.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "api/chat/media_parts.h"
#include "api/fields/json_text.h"
#include "api/tools/call_arguments.h"

namespace sluice {
namespace {

namespace json = boost::json;

constexpr std::string_view kThinkOpen = "<think>";
constexpr std::string_view kThinkClose = "</think>";

struct RoleName {
  std::string_view name;
  TurnRole role;
};

constexpr std::array<RoleName, 6> kRoles{{{"system", TurnRole::system},
                                          {"developer", TurnRole::system},
                                          {"user", TurnRole::user},
                                          {"assistant", TurnRole::assistant},
                                          {"tool", TurnRole::tool},
                                          {"function", TurnRole::tool}}};

constexpr std::array<std::string_view, 4> kUnreadTypes{"input_audio", "audio", "input_file",
                                                       "file"};

std::string_view view(const json::string& text) {
  return {text.data(), text.size()};
}

// The first of `keys` that holds a string.
std::optional<std::string> first_string(JsonFields& fields,
                                        std::initializer_list<std::string_view> keys) {
  std::optional<std::string> found;
  for (const std::string_view key : keys) {
    const json::value* value = fields.find(key);
    if (!found && value != nullptr && value->is_string()) {
      found = std::string(view(value->get_string()));
    }
  }
  return found;
}

// `follows_text`: the part before is text as well.
void add_text(ChatTurn& turn, std::string_view text, bool follows_text) {
  if (turn.role == TurnRole::tool && follows_text) {
    turn.text += '\n';
  }
  turn.text += text;
}

// Whether the client asks for a reusable state after this part or message.
bool is_marked(JsonFields& fields) {
  const bool breakpoint = fields.has("prompt_cache_breakpoint");
  return fields.has("cache_control") || breakpoint;
}

void read_media(JsonFields& part, MediaKind kind, ChatTurn& turn) {
  FieldReport& report = part.report();
  if (turn.role != TurnRole::user && turn.role != TurnRole::tool) {
    refuse_media(part.path(), kind, "only messages of users and tools can show one", report);
    return;
  }
  MediaSource source = read_media_part(part, kind);
  const bool marked = is_marked(part);
  part.ignore_rest();
  add_media(turn, std::move(source));
  mark_end(turn, marked);
}

void read_part(const json::value& value, const std::string& path, bool follows_text, ChatTurn& turn,
               FieldReport& report) {
  if (value.is_string()) {
    add_text(turn, view(value.get_string()), follows_text);
    return;
  }
  if (!value.is_object()) {
    report.fail(ApiErrorKind::invalid_type,
                fmt::format("{} is {}, want an object", path, json_type_name(value)), path);
    return;
  }
  JsonFields part(value.get_object(), path, report);
  const std::string type = part.string("type").value_or("text");
  if (const auto kind = media_kind_of(type)) {
    read_media(part, *kind, turn);
    return;
  }
  if (std::ranges::find(kUnreadTypes, type) != kUnreadTypes.end()) {
    report.fail(ApiErrorKind::unsupported_content,
                fmt::format("{} is of type '{}', which this server does not read", path, type),
                path);
    return;
  }
  std::optional<std::string> text;
  if (type == "thinking" || type == "reasoning") {
    text = first_string(part, {type, "text"});
  } else {
    text = first_string(part, {"text", "refusal"});
  }
  const bool marked = is_marked(part);
  part.ignore_rest();
  if (!text) {
    const bool known = type == "text" || type == "input_text" || type == "output_text";
    report.fail(
        known ? ApiErrorKind::missing_parameter : ApiErrorKind::unsupported_content,
        fmt::format("{} is of type '{}' and has no string 'text'", path, type.substr(0, 64)),
        known ? path + ".text" : path);
    return;
  }
  const bool is_reasoning = type == "thinking" || type == "reasoning";
  if (is_reasoning && turn.role == TurnRole::assistant) {
    turn.reasoning += *text;
  } else {
    add_text(turn, *text, follows_text);
    mark_end(turn, marked);
  }
}

void read_content(JsonFields& message, ChatTurn& turn) {
  const json::value* content = message.find("content");
  const std::string path = message.path_of("content");
  if (content == nullptr) {
    return;
  }
  if (content->is_string()) {
    turn.text = std::string(view(content->get_string()));
    return;
  }
  if (!content->is_array()) {
    message.report().fail(
        ApiErrorKind::invalid_type,
        fmt::format("{} is {}, want a string or an array of parts", path, json_type_name(*content)),
        path);
    return;
  }
  const json::array& parts = content->get_array();
  std::size_t media_before = 0;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const bool follows_text = i > 0 && turn.media.size() == media_before;
    media_before = turn.media.size();
    read_part(parts[i], fmt::format("{}[{}]", path, i), follows_text, turn, message.report());
  }
}

std::string trim_newlines(std::string_view text) {
  const std::size_t first = text.find_first_not_of('\n');
  if (first == std::string_view::npos) {
    return {};
  }
  return std::string(text.substr(first, text.find_last_not_of('\n') - first + 1));
}

// Moves a leading "<think>...</think>" of the text into the reasoning.
void split_inline_reasoning(ChatTurn& turn) {
  const std::string_view text = turn.text;
  const std::size_t begin = text.find_first_not_of(" \t\r\n");
  if (begin == std::string_view::npos || !text.substr(begin).starts_with(kThinkOpen)) {
    return;
  }
  const std::size_t close = text.find(kThinkClose, begin);
  if (close == std::string_view::npos) {
    return;
  }
  const std::size_t inside = begin + kThinkOpen.size();
  turn.reasoning = trim_newlines(text.substr(inside, close - inside));
  const std::size_t rest = text.find_first_not_of('\n', close + kThinkClose.size());
  turn.text = rest == std::string_view::npos ? std::string() : std::string(text.substr(rest));
}

void read_reasoning(JsonFields& message, ChatTurn& turn) {
  const auto given = first_string(message, {"reasoning_content", "reasoning"});
  std::string details;
  if (const json::array* list = message.array("reasoning_details")) {
    for (const json::value& detail : *list) {
      const json::value* text =
          detail.is_object() ? detail.get_object().if_contains("text") : nullptr;
      if (text != nullptr && text->is_string()) {
        details += view(text->get_string());
      }
    }
  }
  if (given && !given->empty()) {
    turn.reasoning = *given;
  } else if (!details.empty()) {
    turn.reasoning = details;
  } else if (turn.reasoning.empty()) {
    split_inline_reasoning(turn);
  }
}

void read_call(const json::value& value, const std::string& path, ChatTurn& turn,
               FieldReport& report) {
  if (!value.is_object()) {
    report.fail(ApiErrorKind::invalid_type,
                fmt::format("{} is {}, want an object", path, json_type_name(value)), path);
    return;
  }
  JsonFields call(value.get_object(), path, report);
  auto function = call.object("function");
  JsonFields& fields = function ? *function : call;
  const auto name = fields.string("name");
  if (!name && !report.failed()) {
    report.fail(ApiErrorKind::missing_parameter,
                fmt::format("{} is required", fields.path_of("name")), fields.path_of("name"));
  }
  const json::value* arguments = fields.find("arguments");
  json::object made;
  if (arguments != nullptr) {
    made = tool_call_arguments(*arguments);
  }
  json::object function_json{{"name", name.value_or("")}, {"arguments", std::move(made)}};
  json::object made_call{{"type", "function"}, {"function", std::move(function_json)}};
  if (const auto id = call.string("id")) {
    made_call["id"] = *id;
  }
  turn.calls.push_back(std::move(made_call));
}

void read_assistant(JsonFields& message, ChatTurn& turn) {
  read_reasoning(message, turn);
  const auto refusal = message.string("refusal");
  if (turn.text.empty() && refusal) {
    turn.text = *refusal;
  }
  const bool prefix = message.boolean("prefix").value_or(false);
  turn.continues = message.boolean("partial").value_or(false) || prefix;
  if (const json::array* calls = message.array("tool_calls")) {
    for (std::size_t i = 0; i < calls->size(); ++i) {
      read_call((*calls)[i], fmt::format("{}[{}]", message.path_of("tool_calls"), i), turn,
                message.report());
    }
  }
}

ChatTurn read_turn(const json::value& value, const std::string& path, FieldReport& report) {
  ChatTurn turn;
  if (!value.is_object()) {
    report.fail(ApiErrorKind::invalid_type,
                fmt::format("{} is {}, want an object", path, json_type_name(value)), path);
    return turn;
  }
  JsonFields message(value.get_object(), path, report);
  const auto role = message.string("role");
  if (!role) {
    report.fail(ApiErrorKind::missing_parameter, path + ".role is required", path + ".role");
    return turn;
  }
  const auto* known = std::find_if(kRoles.begin(), kRoles.end(),
                                   [&](const RoleName& entry) { return entry.name == *role; });
  if (known == kRoles.end()) {
    report.fail(ApiErrorKind::invalid_value,
                fmt::format("{}.role is '{}', want system, developer, user, assistant, tool or "
                            "function",
                            path, role->substr(0, 64)),
                path + ".role");
    return turn;
  }
  turn.role = known->role;
  read_content(message, turn);
  mark_end(turn, is_marked(message));
  if (turn.role == TurnRole::assistant) {
    read_assistant(message, turn);
  } else if (turn.role == TurnRole::tool) {
    message.find("tool_call_id");  // results are matched to calls by their order
    message.find("name");
  }
  message.ignore_rest();
  return turn;
}

}  // namespace

std::vector<ChatTurn> read_chat_turns(const json::value& messages, const std::string& path,
                                      FieldReport& report) {
  std::vector<ChatTurn> turns;
  json::value decoded;
  const json::value* list = &messages;
  if (messages.is_string()) {
    auto parsed = parse_json(std::string(view(messages.get_string())), kBodyJsonLimits);
    if (parsed) {
      decoded = std::move(*parsed);
      list = &decoded;
    }
  }
  if (!list->is_array()) {
    report.fail(ApiErrorKind::invalid_type,
                fmt::format("{} is {}, want an array", path, json_type_name(*list)), path);
    return turns;
  }
  const json::array& array = list->get_array();
  if (array.empty()) {
    report.fail(ApiErrorKind::invalid_value, path + " is empty, want at least one message", path);
  }
  turns.reserve(array.size());
  for (std::size_t i = 0; i < array.size() && !report.failed(); ++i) {
    turns.push_back(read_turn(array[i], fmt::format("{}[{}]", path, i), report));
  }
  return turns;
}

}  // namespace sluice
