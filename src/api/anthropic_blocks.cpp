// See anthropic_blocks.h. One BlockReader reads one message.
#include "api/anthropic_blocks.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <optional>
#include <string_view>
#include <utility>

#include "api/call_arguments.h"

namespace sluice {
namespace {

namespace json = boost::json;

constexpr std::string_view kBlankLine = "\n\n";

std::string_view view(const json::string& text) {
  return {text.data(), text.size()};
}

void join(std::string& text, std::string_view more, std::string_view between) {
  if (!text.empty() && !more.empty()) {
    text += between;
  }
  text += more;
}

// What a result tells first when the call failed.
std::string with_error_prefix(std::string text) {
  constexpr std::string_view kError = "Error";
  return text.starts_with(kError) ? text : "Error: " + text;
}

// Calls `read` with each block of a list, or with a string as if it were one text block.
void for_each_block(const json::value& content, const std::string& path, FieldReport& report,
                    const std::function<void(JsonFields&, const std::string& type)>& read) {
  if (content.is_string()) {
    const json::object block{{"type", "text"}, {"text", content.get_string()}};
    JsonFields fields(block, path, report);
    read(fields, "text");
    return;
  }
  if (!content.is_array()) {
    report.fail(
        ApiErrorKind::invalid_type,
        fmt::format("{} is {}, want a string or an array of blocks", path, json_type_name(content)),
        path);
    return;
  }
  const json::array& blocks = content.get_array();
  for (std::size_t i = 0; i < blocks.size() && !report.failed(); ++i) {
    const std::string block_path = fmt::format("{}[{}]", path, i);
    if (!blocks[i].is_object()) {
      report.fail(ApiErrorKind::invalid_type,
                  fmt::format("{} is {}, want an object", block_path, json_type_name(blocks[i])),
                  block_path);
      return;
    }
    JsonFields block(blocks[i].get_object(), block_path, report);
    const auto type = block.string("type");
    if (!type && !report.failed()) {
      report.fail(ApiErrorKind::missing_parameter, block.path_of("type") + " is required",
                  block.path_of("type"));
      return;
    }
    block.find("cache_control");
    read(block, type.value_or(""));
    block.ignore_rest();
  }
}

std::string required_string(JsonFields& fields, std::string_view key) {
  const auto text = fields.string(key);
  if (!text && !fields.report().failed()) {
    fields.report().fail(ApiErrorKind::missing_parameter, fields.path_of(key) + " is required",
                         fields.path_of(key));
  }
  return text.value_or("");
}

// The fields are checked first: a broken picture is a mistake, a good one is what cannot be served.
void refuse_image(JsonFields& image) {
  FieldReport& report = image.report();
  auto source = image.object("source");
  if (!source) {
    if (!report.failed()) {
      report.fail(ApiErrorKind::missing_parameter, image.path_of("source") + " is required",
                  image.path_of("source"));
    }
    return;
  }
  const std::string type = required_string(*source, "type");
  if (type == "base64") {
    required_string(*source, "media_type");
    required_string(*source, "data");
  } else if (type == "url") {
    required_string(*source, "url");
  } else if (type != "file") {
    report.fail(ApiErrorKind::invalid_value,
                fmt::format("{} is '{}', want base64, url or file", source->path_of("type"),
                            type.substr(0, 64)),
                source->path_of("type"));
  }
  report.fail(ApiErrorKind::unsupported_content,
              fmt::format("{} is an image: this server reads text only", image.path()),
              image.path());
}

std::string text_of_blocks(const json::value& content, const std::string& path,
                           std::string_view between, FieldReport& report);

std::string document_text(JsonFields& document) {
  FieldReport& report = document.report();
  std::string text = document.string("title").value_or("");
  join(text, document.string("context").value_or(""), "\n");
  auto source = document.object("source");
  if (!source) {
    if (!report.failed()) {
      report.fail(ApiErrorKind::missing_parameter, document.path_of("source") + " is required",
                  document.path_of("source"));
    }
    return text;
  }
  const std::string type = required_string(*source, "type");
  if (type == "text") {
    source->find("media_type");
    join(text, required_string(*source, "data"), "\n");
  } else if (const json::value* content = source->find("content");
             type == "content" && content != nullptr) {
    join(text, text_of_blocks(*content, source->path_of("content"), "\n", report), "\n");
  } else {
    report.fail(ApiErrorKind::unsupported_content,
                fmt::format("{} has a source of type '{}': this server reads documents of type "
                            "'text' or 'content' only",
                            document.path(), type.substr(0, 64)),
                document.path());
  }
  return text;
}

std::string search_result_text(JsonFields& result) {
  std::string text = result.string("title").value_or("");
  join(text, result.string("source").value_or(""), "\n");
  if (const json::value* content = result.find("content")) {
    join(text, text_of_blocks(*content, result.path_of("content"), "\n", result.report()), "\n");
  }
  return text;
}

// A block that stands for a text wherever it is; none: it stands for nothing.
std::optional<std::string> block_text(JsonFields& block, const std::string& type) {
  if (type == "text") {
    return required_string(block, "text");
  }
  if (type == "document") {
    return document_text(block);
  }
  if (type == "search_result") {
    return search_result_text(block);
  }
  if (type == "tool_reference") {
    return required_string(block, "tool_name");
  }
  if (type == "image") {
    refuse_image(block);
    return std::nullopt;
  }
  const json::value* text = block.find("text");
  if (text != nullptr && text->is_string()) {
    return std::string(view(text->get_string()));
  }
  block.report().ignore(block.path());
  return std::nullopt;
}

std::string text_of_blocks(const json::value& content, const std::string& path,
                           std::string_view between, FieldReport& report) {
  std::string text;
  for_each_block(content, path, report, [&](JsonFields& block, const std::string& type) {
    join(text, block_text(block, type).value_or(""), between);
  });
  return text;
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

// The message being read, and the calls of the assistant message before it.
class BlockReader {
 public:
  BlockReader(TurnRole role, const std::vector<std::string>& earlier_calls)
      : earlier_calls_(earlier_calls) {
    turn_.role = role;
  }

  void read(JsonFields& message) {
    const json::value* content = message.find("content");
    if (content == nullptr) {
      return;
    }
    if (turn_.role == TurnRole::system) {
      turn_.text = read_anthropic_system(*content, message.path_of("content"), message.report());
      return;
    }
    for_each_block(*content, message.path_of("content"), message.report(),
                   [this](JsonFields& block, const std::string& type) { read_block(block, type); });
  }

  const std::vector<std::string>& calls() const { return calls_; }

  // Results, the turn itself, and what a system block in it says.
  std::vector<ChatTurn> take_turns() {
    std::ranges::stable_sort(results_, {}, &Result::place);
    std::vector<ChatTurn> turns;
    for (Result& result : results_) {
      turns.push_back(std::move(result.turn));
    }
    const bool only_results = turn_.role == TurnRole::user && turn_.text.empty() &&
                              (!results_.empty() || !system_text_.empty());
    if (!only_results) {
      turns.push_back(std::move(turn_));
    }
    if (!system_text_.empty()) {
      turns.push_back({.role = TurnRole::system, .text = std::move(system_text_)});
    }
    return turns;
  }

 private:
  struct Result {
    std::ptrdiff_t place = 0;  // of the call it answers
    ChatTurn turn;
  };

  void read_block(JsonFields& block, const std::string& type) {
    const bool assistant = turn_.role == TurnRole::assistant;
    if (assistant && type == "thinking") {
      block.find("signature");
      turn_.reasoning += block.string("thinking").value_or("");
    } else if (assistant && type == "tool_use") {
      read_call(block);
    } else if (!assistant && type == "tool_result") {
      read_result(block);
    } else if (!assistant && type == "mid_conv_system") {
      if (const json::value* content = block.find("content")) {
        join(system_text_,
             read_anthropic_system(*content, block.path_of("content"), block.report()), kBlankLine);
      }
    } else {
      // Text goes on where it stopped; other blocks are paragraphs of their own.
      const bool apart = type != "text";
      const auto text = block_text(block, type);
      if (text && !text->empty()) {
        join(turn_.text, *text, apart || apart_ ? kBlankLine : "");
        apart_ = apart;
      }
    }
  }

  void read_call(JsonFields& block) {
    calls_.push_back(block.string("id").value_or(""));
    json::object arguments;
    if (const json::value* input = block.find("input")) {
      arguments = tool_call_arguments(*input);
    }
    turn_.calls.push_back(
        json::object{{"type", "function"},
                     {"function", json::object{{"name", required_string(block, "name")},
                                               {"arguments", std::move(arguments)}}}});
  }

  void read_result(JsonFields& block) {
    const auto call = std::ranges::find(earlier_calls_, block.string("tool_use_id").value_or(""));
    Result result{.place = call - earlier_calls_.begin(), .turn = {.role = TurnRole::tool}};
    if (const json::value* content = block.find("content")) {
      result.turn.text = text_of_blocks(*content, block.path_of("content"), "\n", block.report());
    }
    if (block.boolean("is_error").value_or(false)) {
      result.turn.text = with_error_prefix(std::move(result.turn.text));
    }
    results_.push_back(std::move(result));
  }

  const std::vector<std::string>& earlier_calls_;
  ChatTurn turn_;
  bool apart_ = false;  // the last block of the text was a paragraph of its own
  std::vector<std::string> calls_;
  std::vector<Result> results_;
  std::string system_text_;
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
  join(last.text, turn.text, kBlankLine);
  join(last.reasoning, turn.reasoning, kBlankLine);
  last.calls.insert(last.calls.end(), turn.calls.begin(), turn.calls.end());
}

}  // namespace

std::vector<ChatTurn> read_anthropic_messages(const json::value& messages, const std::string& path,
                                              FieldReport& report) {
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
    BlockReader reader(*role, calls);
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

std::string read_anthropic_system(const json::value& content, const std::string& path,
                                  FieldReport& report) {
  std::string text;
  for_each_block(content, path, report, [&](JsonFields& block, const std::string& type) {
    join(text, without_billing_line(block_text(block, type).value_or("")), kBlankLine);
  });
  return text;
}

}  // namespace sluice
