#include "api/anthropic/messages_tools.h"

#include <fmt/format.h>

#include <array>
#include <boost/json/parse.hpp>
#include <optional>
#include <string_view>
#include <utility>

#include "api/fields/json_text.h"

namespace sluice {
namespace {

namespace json = boost::json;

constexpr std::string_view kCallPrefix = "call_";
constexpr std::string_view kToolUsePrefix = "toolu_";

// `id` with `to` in place of `from`; other ids stay as they are.
std::string with_prefix(std::string_view id, std::string_view from, std::string_view to) {
  if (!id.starts_with(from)) {
    return std::string(id);
  }
  return std::string(to) + std::string(id.substr(from.size()));
}

// Tools whose parameters the API documents instead of asking for them. `type` is this prefix and a
// date.
struct KnownTool {
  std::string_view type_prefix;
  std::string_view description;
  std::string_view parameters;
};

constexpr std::array<KnownTool, 3> kKnownTools{
    {{"bash_", "Run commands in a bash shell that keeps its state between calls.",
      R"({"type":"object","properties":{)"
      R"("command":{"type":"string","description":"The command to run."},)"
      R"("restart":{"type":"boolean","description":"Start the shell anew instead."}}})"},
     {"text_editor_", "View, create and edit text files.",
      R"({"type":"object","properties":{)"
      R"("command":{"type":"string","enum":["view","create","str_replace","insert"]},)"
      R"("path":{"type":"string","description":"Absolute path of a file or directory."},)"
      R"("view_range":{"type":"array","items":{"type":"integer"},)"
      R"("description":"For view: first and last line; -1 is the end."},)"
      R"("file_text":{"type":"string","description":"For create: the whole file."},)"
      R"("old_str":{"type":"string","description":"For str_replace: the text to replace, once."},)"
      R"("new_str":{"type":"string","description":"For str_replace: the new text."},)"
      R"("insert_line":{"type":"integer","description":"For insert: after which line."},)"
      R"("insert_text":{"type":"string","description":"For insert: the text."}},)"
      R"("required":["command","path"]})"},
     {"memory_", "Keep notes in files below /memories.",
      R"({"type":"object","properties":{)"
      R"("command":{"type":"string",)"
      R"("enum":["view","create","str_replace","insert","delete","rename"]},)"
      R"("path":{"type":"string","description":"Path of the file or directory."},)"
      R"("view_range":{"type":"array","items":{"type":"integer"}},)"
      R"("file_text":{"type":"string"},"old_str":{"type":"string"},"new_str":{"type":"string"},)"
      R"("insert_line":{"type":"integer"},"insert_text":{"type":"string"},)"
      R"("old_path":{"type":"string"},"new_path":{"type":"string"}},)"
      R"("required":["command"]})"}}};

const KnownTool* find_known(std::string_view type) {
  for (const KnownTool& known : kKnownTools) {
    if (type.starts_with(known.type_prefix)) {
      return &known;
    }
  }
  return nullptr;
}

// The choice in the form of chat completions; null: auto.
json::value chat_choice(JsonFields& choice, bool has_tools) {
  FieldReport& report = choice.report();
  const std::string type = choice.string("type").value_or("auto");
  if ((type == "any" || type == "tool") && !has_tools && !report.failed()) {
    report.fail(ApiErrorKind::invalid_value,
                choice.path() + " asks for a tool call, but there is no tool that can be called",
                choice.path());
  }
  if (type == "auto" || type == "none") {
    return json::string(type);
  }
  if (type == "any") {
    return "required";
  }
  if (type == "tool") {
    const auto name = choice.string("name");
    if (!name && !report.failed()) {
      report.fail(ApiErrorKind::missing_parameter, choice.path_of("name") + " is required",
                  choice.path_of("name"));
    }
    return json::object{{"type", "function"},
                        {"function", json::object{{"name", name.value_or("")}}}};
  }
  report.fail(ApiErrorKind::invalid_value,
              fmt::format("{} is '{}', want auto, any, tool or none", choice.path_of("type"),
                          type.substr(0, 64)),
              choice.path_of("type"));
  return nullptr;
}

}  // namespace

AnthropicTools read_anthropic_tools(JsonFields& body) {
  AnthropicTools tools;
  json::array list;
  const json::array* given = body.array("tools");
  for (std::size_t i = 0; given != nullptr && i < given->size() && !body.report().failed(); ++i) {
    const std::string path = fmt::format("{}[{}]", body.path_of("tools"), i);
    const json::object* tool = (*given)[i].if_object();
    if (tool == nullptr) {
      body.report().fail(ApiErrorKind::invalid_type,
                         fmt::format("{} is {}, want an object", path, json_type_name((*given)[i])),
                         path);
      break;
    }
    json::value made = chat_tool(*tool, path, body.report());
    if (made.is_null()) {
      continue;
    }
    tools.marked = tools.marked || tool->contains("cache_control");
    tools.texts.emplace(std::string(made.at("function").at("name").get_string()), shown_tool(made));
    list.push_back(std::move(made));
  }
  if (auto choice = body.object("tool_choice")) {
    json::value made = chat_choice(*choice, !list.empty());
    if (!list.empty()) {
      tools.chat_fields["tool_choice"] = std::move(made);
      if (choice->boolean("disable_parallel_tool_use").value_or(false)) {
        tools.chat_fields["parallel_tool_calls"] = false;
      }
    }
    choice->ignore_rest();
  }
  if (!list.empty()) {
    tools.chat_fields["tools"] = std::move(list);
  }
  return tools;
}

json::value chat_tool(const json::object& tool, const std::string& path, FieldReport& report) {
  JsonFields fields(tool, path, report);
  const std::string type = fields.string("type").value_or("custom");
  const KnownTool* known = find_known(type);
  if (type != "custom" && known == nullptr) {
    report.ignore(path);
    return nullptr;
  }
  const auto name = fields.string("name");
  if (!name && !report.failed()) {
    report.fail(ApiErrorKind::missing_parameter, fields.path_of("name") + " is required",
                fields.path_of("name"));
  }
  json::object function{{"name", name.value_or("")}};
  const auto description = fields.string("description");
  if (description || known != nullptr) {
    function["description"] = description ? *description : std::string(known->description);
  }
  const auto schema = fields.object("input_schema");
  if (schema) {
    function["parameters"] = *tool.if_contains("input_schema");
  } else if (known != nullptr) {
    function["parameters"] = json::parse(json::string_view(known->parameters));
  } else {
    function["parameters"] = json::object{{"type", "object"}, {"properties", json::object{}}};
  }
  if (fields.boolean("strict").value_or(false)) {
    function["strict"] = true;
  }
  json::object made{{"type", "function"}, {"function", std::move(function)}};
  if (fields.boolean("defer_loading").value_or(false)) {
    made["defer_loading"] = true;
  }
  fields.find("cache_control");
  fields.ignore_rest();
  return made;
}

std::string tool_use_id_of(std::string_view call_id) {
  return with_prefix(call_id, kCallPrefix, kToolUsePrefix);
}

std::string call_id_of(std::string_view tool_use_id) {
  return with_prefix(tool_use_id, kToolUsePrefix, kCallPrefix);
}

std::string shown_tool(const json::value& chat_tool) {
  return to_json(json::object{{"type", "function"}, {"function", chat_tool.at("function")}});
}

}  // namespace sluice
