// See messages_history.h. One MessageReader reads one message.
#include "api/anthropic/messages_history.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "api/chat/media_parts.h"
#include "api/tools/call_arguments.h"

namespace sluice {
namespace {

namespace json = boost::json;

constexpr std::string_view kBlankLine = "\n\n";

// What a result tells first when the call failed.
void add_error_prefix(ChatTurn& turn) {
  if (!turn.text.starts_with("Error")) {
    prepend_text(turn, "Error: ");
  }
}

// "x-anthropic-billing-header: cc_version=...; cch=...;" and the empty lines after it.
std::string without_billing_line(std::string text) {
  if (!text.starts_with("x-anthropic-billing-header")) {
    return text;
  }
  const std::size_t line_end = text.find('\n');
  const std::size_t rest = text.find_first_not_of('\n', line_end);
  return line_end == std::string::npos || rest == std::string::npos ? "" : text.substr(rest);
}

class MessageReader {
 public:
  // earlier_calls: ids of the calls that results in this message may answer.
  MessageReader(TurnRole role, const std::vector<std::string>& earlier_calls, BlockContext context)
      : context_(context) {
    turn_.role = role;
    for (const std::string& id : earlier_calls) {
      places_.try_emplace(id, places_.size());
    }
  }

  void read(JsonFields& message) {
    const json::value* content = message.find("content");
    if (content == nullptr) {
      return;
    }
    const std::string path = message.path_of("content");
    if (turn_.role == TurnRole::system) {
      turn_ = read_anthropic_system(*content, path, context_);
      return;
    }
    for_each_block(*content, path, context_.report,
                   [this](JsonFields& block, const std::string& type, bool marked) {
                     read_block(block, type, marked);
                   });
  }

  const std::vector<std::string>& calls() const { return calls_; }

  // Results, the turn itself, and what a system block in it says.
  std::vector<ChatTurn> take_turns() {
    std::ranges::sort(results_, {},
                      [](const Result& result) { return std::pair(result.place, result.number); });
    std::vector<ChatTurn> turns;
    turns.reserve(results_.size() + 2);
    for (Result& result : results_) {
      turns.push_back(std::move(result.turn));
    }
    const bool says_nothing = turn_.role == TurnRole::user && turn_.is_empty() &&
                              (!results_.empty() || !system_.text.empty());
    if (!says_nothing) {
      turns.push_back(std::move(turn_));
    }
    if (!system_.text.empty()) {
      turns.push_back(std::move(system_));
    }
    return turns;
  }

 private:
  struct Result {
    std::size_t place = 0;   // of the call it answers
    std::size_t number = 0;  // as sent
    ChatTurn turn;
  };

  void read_block(JsonFields& block, const std::string& type, bool marked) {
    const bool assistant = turn_.role == TurnRole::assistant;
    if (assistant && type == "thinking") {
      block.find("signature");
      turn_.reasoning += block.string("thinking").value_or("");
    } else if (assistant && type == "tool_use") {
      read_call(block);
    } else if (!assistant && type == "tool_result") {
      read_result(block, marked);
    } else if (!assistant && type == "mid_conv_system") {
      if (const json::value* content = block.find("content")) {
        system_ = read_anthropic_system(*content, block.path_of("content"), context_);
      }
    } else if (!assistant && type == "image") {
      turn_.text += std::exchange(apart_, false) ? kBlankLine : "";
      add_media(turn_, read_image_source(block));
      mark_end(turn_, marked);
    } else {
      // Text and pictures go on where they stopped; other blocks are paragraphs of their own.
      const bool apart = type != "text";
      const auto text = block_text(block, type, context_);
      if (text && !text->empty()) {
        turn_.text += !turn_.is_empty() && (apart || apart_) ? kBlankLine : "";
        turn_.text += *text;
        apart_ = apart;
      }
      mark_end(turn_, marked);
    }
  }

  void read_call(JsonFields& block) {
    calls_.push_back(block.string("id").value_or(""));
    const std::string id = call_id_of(calls_.back());
    json::object arguments;
    if (const json::value* input = block.find("input")) {
      arguments = tool_call_arguments(*input);
    }
    turn_.calls.push_back(
        json::object{{"id", id},
                     {"type", "function"},
                     {"function", json::object{{"name", required_string(block, "name")},
                                               {"arguments", std::move(arguments)}}}});
  }

  void read_result(JsonFields& block, bool marked) {
    const auto call = places_.find(block.string("tool_use_id").value_or(""));
    Result result{.place = call != places_.end() ? call->second : places_.size(),
                  .number = results_.size(),
                  .turn = {.role = TurnRole::tool}};
    if (const json::value* content = block.find("content")) {
      add_blocks(*content, block.path_of("content"), context_, result.turn);
    }
    if (block.boolean("is_error").value_or(false)) {
      add_error_prefix(result.turn);
    }
    mark_end(result.turn, marked);
    results_.push_back(std::move(result));
  }

  std::unordered_map<std::string, std::size_t> places_;  // of the calls of the turn before
  BlockContext context_;
  ChatTurn turn_;
  bool apart_ = false;  // the last block of the text was a paragraph of its own
  std::vector<std::string> calls_;
  std::vector<Result> results_;
  ChatTurn system_ = {.role = TurnRole::system};
};

std::optional<TurnRole> read_role(JsonFields& message) {
  const std::string role = required_string(message, "role");
  if (role == "user") {
    return TurnRole::user;
  }
  if (role == "assistant") {
    return TurnRole::assistant;
  }
  if (role == "system") {
    return TurnRole::system;
  }
  message.report().fail(ApiErrorKind::invalid_value,
                        fmt::format("{} is '{}', want user, assistant or system",
                                    message.path_of("role"), role.substr(0, 64)),
                        message.path_of("role"));
  return std::nullopt;
}

void add_turn(std::vector<ChatTurn>& turns, ChatTurn turn) {
  const bool merges = !turns.empty() && turns.back().role == turn.role &&
                      (turn.role == TurnRole::user || turn.role == TurnRole::assistant);
  if (!merges) {
    turns.push_back(std::move(turn));
    return;
  }
  ChatTurn& last = turns.back();
  append_turn_text(last, turn);
  join(last.reasoning, turn.reasoning, kBlankLine);
  last.calls.insert(last.calls.end(), turn.calls.begin(), turn.calls.end());
}

}  // namespace

std::vector<ChatTurn> read_anthropic_messages(const json::value& messages, const std::string& path,
                                              BlockContext context) {
  FieldReport& report = context.report;
  std::vector<ChatTurn> turns;
  if (!messages.is_array()) {
    report.fail(ApiErrorKind::invalid_type,
                fmt::format("{} is {}, want an array", path, json_type_name(messages)), path);
    return turns;
  }
  const json::array& array = messages.get_array();
  if (array.empty()) {
    report.fail(ApiErrorKind::invalid_value, path + " is empty, want at least one message", path);
  }
  std::vector<std::string> calls;  // of the assistant messages since the last user message
  for (std::size_t i = 0; i < array.size() && !report.failed(); ++i) {
    const std::string message_path = fmt::format("{}[{}]", path, i);
    if (!array[i].is_object()) {
      report.fail(ApiErrorKind::invalid_type,
                  fmt::format("{} is {}, want an object", message_path, json_type_name(array[i])),
                  message_path);
      return turns;
    }
    JsonFields message(array[i].get_object(), message_path, report);
    const auto role = read_role(message);
    if (!role) {
      return turns;
    }
    MessageReader reader(*role, calls, context);
    reader.read(message);
    message.ignore_rest();
    for (ChatTurn& turn : reader.take_turns()) {
      add_turn(turns, std::move(turn));
    }
    if (*role == TurnRole::assistant) {
      calls.insert(calls.end(), reader.calls().begin(), reader.calls().end());
    } else if (*role == TurnRole::user) {
      calls.clear();
    }
  }
  return turns;
}

ChatTurn read_anthropic_system(const json::value& content, const std::string& path,
                               BlockContext context) {
  ChatTurn turn{.role = TurnRole::system};
  for_each_block(
      content, path, context.report, [&](JsonFields& block, const std::string& type, bool marked) {
        join(turn.text, without_billing_line(block_text(block, type, context).value_or("")),
             kBlankLine);
        mark_end(turn, marked);
      });
  return turn;
}

}  // namespace sluice
