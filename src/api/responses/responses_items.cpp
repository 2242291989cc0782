#include "api/responses/responses_items.h"

#include <fmt/format.h>

#include <optional>
#include <utility>

#include "api/fields/json_text.h"
#include "api/responses/reasoning_seal.h"

namespace sluice {
namespace {

namespace json = boost::json;

std::string_view view(const json::string& text) {
  return {text.data(), text.size()};
}

json::string_view json_view(std::string_view text) {
  return {text.data(), text.size()};
}

// The texts of a list of parts, one after the other.
std::string joined_texts(const json::value* parts) {
  std::string text;
  if (parts == nullptr || !parts->is_array()) {
    return text;
  }
  for (const json::value& part : parts->get_array()) {
    const json::value* part_text =
        part.is_object() ? part.get_object().if_contains("text") : nullptr;
    if (part_text != nullptr && part_text->is_string()) {
      text += view(part_text->get_string());
    }
  }
  return text;
}

// What this server itself adds to the parts of its answers, and what needs no reading.
json::value without_annotations(const json::value& part) {
  if (!part.is_object()) {
    return part;
  }
  json::object copy = part.get_object();
  copy.erase("annotations");
  copy.erase("logprobs");
  return copy;
}

bool is_reference(std::string_view type, JsonFields& item) {
  return type == "item_reference" || (type.empty() && !item.has("role") && item.has("id"));
}

}  // namespace

void ResponseItemReader::add_message(std::string_view role, std::string_view text,
                                     const std::string& path) {
  push(json::object{{"role", json_view(role)}, {"content", json_view(text)}}, path);
}

void ResponseItemReader::add_items(const json::array& items, const std::string& path) {
  for (std::size_t i = 0; i < items.size() && !report_->failed(); ++i) {
    add_item(items[i], fmt::format("{}[{}]", path, i), false);
  }
}

json::array ResponseItemReader::take_messages() {
  assistant_open_ = false;
  return std::move(messages_);
}

// `stored`: the item comes from the archive and can refer to no other.
void ResponseItemReader::add_item(const json::value& value, const std::string& path, bool stored) {
  if (!value.is_object()) {
    report_->fail(ApiErrorKind::invalid_type,
                  fmt::format("{} is {}, want an object", path, json_type_name(value)), path);
    return;
  }
  JsonFields item(value.get_object(), path, *report_);
  const std::string type = item.string("type").value_or("");
  for (const std::string_view any : {"id", "status", "phase"}) {
    item.find(any);
  }
  if (is_reference(type, item)) {
    add_reference(item, stored);
  } else {
    add_typed(item, type.empty() ? "message" : type, path);
  }
}

void ResponseItemReader::add_typed(JsonFields& item, std::string_view type,
                                   const std::string& path) {
  if (type == "message") {
    add_message_item(item);
  } else if (type == "function_call" || type == "custom_tool_call") {
    add_call(item, type == "custom_tool_call");
  } else if (type == "function_call_output" || type == "custom_tool_call_output") {
    add_output(item);
  } else if (type == "reasoning") {
    add_reasoning(item);
  } else if (type == "additional_tools") {
    item.find("role");
    if (const json::array* tools = item.array("tools")) {
      tools_->add_later(*tools, item.path_of("tools"));
    }
  } else {
    report_->ignore(path);
    return;
  }
  item.ignore_rest();
}

void ResponseItemReader::add_message_item(JsonFields& item) {
  const auto role = item.string("role");
  const json::value* content = item.find("content");
  if (content != nullptr) {
    check_files(*content, item.path_of("content"));
  }
  if (role == "assistant") {
    assistant(item.path());
    if (content != nullptr) {
      add_assistant_content(*content, item.path_of("content"));
    }
    return;
  }
  if (role && role != "user" && role != "system" && role != "developer") {
    report_->fail(ApiErrorKind::invalid_value,
                  fmt::format("{} is '{}', want user, assistant, system or developer",
                              item.path_of("role"), role->substr(0, 64)),
                  item.path_of("role"));
  }
  json::object message;
  if (role) {
    message["role"] = *role;
  }
  if (content != nullptr) {
    message["content"] = *content;
  }
  push(std::move(message), item.path());
}

void ResponseItemReader::add_assistant_content(const json::value& content,
                                               const std::string& path) {
  json::array& parts = messages_.back().get_object()["content"].get_array();
  const std::string parts_path = message_path() + ".content";
  if (!content.is_array()) {
    paths_->add(fmt::format("{}[{}]", parts_path, parts.size()), path);
    parts.push_back(content);
    return;
  }
  for (std::size_t i = 0; i < content.get_array().size(); ++i) {
    paths_->add(fmt::format("{}[{}]", parts_path, parts.size()), fmt::format("{}[{}]", path, i));
    parts.push_back(without_annotations(content.get_array()[i]));
  }
}

// There is no file store: whatever names a file cannot be read.
void ResponseItemReader::check_files(const json::value& content, const std::string& path) {
  if (!content.is_array()) {
    return;
  }
  for (std::size_t i = 0; i < content.get_array().size(); ++i) {
    const json::value& part = content.get_array()[i];
    const json::value* file = part.is_object() ? part.get_object().if_contains("file_id") : nullptr;
    if (file != nullptr && !file->is_null()) {
      const std::string file_path = fmt::format("{}[{}].file_id", path, i);
      report_->fail(ApiErrorKind::unsupported_content,
                    file_path + " names a file, but this server keeps none", file_path);
    }
  }
}

void ResponseItemReader::add_call(JsonFields& item, bool custom) {
  const auto name = item.string("name");
  const std::string name_space = item.string("namespace").value_or("");
  const std::string call_id = item.string("call_id").value_or("");
  json::object function;
  if (name) {
    function["name"] = flat_tool_name(name_space, *name);
  } else {
    report_->fail(ApiErrorKind::missing_parameter, item.path_of("name") + " is required",
                  item.path_of("name"));
  }
  if (custom) {
    function["arguments"] =
        json::object{{json_view(kCustomInput), item.string("input").value_or("")}};
  } else if (const json::value* arguments = item.find("arguments")) {
    function["arguments"] = *arguments;
  }
  json::array& calls =
      assistant(item.path()).emplace("tool_calls", json::array()).first->value().get_array();
  const std::string translated = fmt::format("{}.tool_calls[{}]", message_path(), calls.size());
  paths_->add(translated, item.path());
  paths_->add(translated + ".function", item.path());
  calls.push_back(
      json::object{{"id", call_id}, {"type", "function"}, {"function", std::move(function)}});
}

void ResponseItemReader::add_output(JsonFields& item) {
  json::object message{{"role", "tool"}, {"content", ""}};
  message["tool_call_id"] = item.string("call_id").value_or("");
  if (const json::value* output = item.find("output")) {
    check_files(*output, item.path_of("output"));
    const bool readable = output->is_string() || output->is_array();
    message["content"] = readable ? *output : json::value(json::string(to_json(*output)));
  }
  item.find("name");
  push(std::move(message), item.path());
  paths_->add(message_path() + ".content", item.path_of("output"));
}

void ResponseItemReader::add_reasoning(JsonFields& item) {
  std::string text = joined_texts(item.find("content"));
  const json::value* summary = item.find("summary");
  const json::value* sealed = item.find("encrypted_content");
  if (text.empty()) {
    text = joined_texts(summary);
  }
  if (text.empty() && sealed != nullptr && sealed->is_string()) {
    text = unseal_reasoning(view(sealed->get_string())).value_or("");
  }
  if (text.empty()) {
    return;
  }
  json::value& reasoning = assistant(item.path())["reasoning_content"];
  reasoning =
      reasoning.is_string() ? std::string(view(reasoning.get_string())) + "\n" + text : text;
}

void ResponseItemReader::add_reference(JsonFields& item, bool stored) {
  const auto id = item.string("id");
  const auto found = id && !stored ? archive_->item(*id) : std::nullopt;
  if (!found) {
    report_->fail(ApiErrorKind::invalid_value,
                  fmt::format("{} refers to '{}', which is not stored", item.path(),
                              id.value_or("").substr(0, 64)),
                  item.path_of("id"));
    return;
  }
  add_item(*found, item.path(), true);
}

json::array ResponseItemReader::resolved(const json::array& items, const ResponseArchive& archive) {
  json::array kept;
  kept.reserve(items.size());
  for (const json::value& value : items) {
    FieldReport unused;
    JsonFields item(value.get_object(), "", unused);
    const auto id = item.string("id");
    const bool reference = is_reference(item.string("type").value_or(""), item);
    auto found = reference && id ? archive.item(*id) : std::nullopt;
    kept.push_back(found ? json::value(std::move(*found)) : value);
  }
  return kept;
}

void ResponseItemReader::push(json::object message, const std::string& path) {
  assistant_open_ = false;
  messages_.push_back(std::move(message));
  paths_->add(message_path(), path);
}

json::object& ResponseItemReader::assistant(const std::string& path) {
  if (!assistant_open_) {
    push(json::object{{"role", "assistant"}, {"content", json::array()}}, path);
    assistant_open_ = true;
  }
  return messages_.back().get_object();
}

std::string ResponseItemReader::message_path() const {
  return fmt::format("messages[{}]", messages_.size() - 1);
}

}  // namespace sluice
