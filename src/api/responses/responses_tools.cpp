#include "api/responses/responses_tools.h"

#include <fmt/format.h>

#include <utility>

namespace sluice {
namespace {

namespace json = boost::json;

json::string_view key_of(std::string_view text) {
  return {text.data(), text.size()};
}

// The string at `key`, or nothing: wrong types are the business of whoever needs the value.
std::string_view text_at(const json::object& object, std::string_view key) {
  const json::value* value = object.if_contains(key_of(key));
  if (value == nullptr || !value->is_string()) {
    return {};
  }
  return {value->get_string().data(), value->get_string().size()};
}

// How the input of a custom tool must look, as words for the model.
std::string format_hint(const json::object& tool) {
  const json::value* format = tool.if_contains("format");
  if (format == nullptr || !format->is_object() ||
      text_at(format->get_object(), "type") != "grammar") {
    return {};
  }
  const json::object& grammar = format->get_object();
  return fmt::format("\n\nThe input must match this {} grammar:\n{}", text_at(grammar, "syntax"),
                     text_at(grammar, "definition"));
}

}  // namespace

std::string flat_tool_name(std::string_view name_space, std::string_view name) {
  if (name_space.empty()) {
    return std::string(name);
  }
  const bool separated = name_space.ends_with("__") || name_space.ends_with('.');
  return fmt::format("{}{}{}", name_space, separated ? "" : "__", name);
}

void ResponseTools::add(const json::array& tools, const std::string& path) {
  for (std::size_t i = 0; i < tools.size(); ++i) {
    add_tool(tools[i], fmt::format("{}[{}]", path, i), "");
  }
}

void ResponseTools::add_later(const json::array& tools, const std::string& path) {
  skip_known_ = true;
  add(tools, path);
  skip_known_ = false;
}

void ResponseTools::add_tool(const json::value& value, const std::string& path,
                             const std::string& name_space) {
  if (!value.is_object()) {
    report_->fail(ApiErrorKind::invalid_type,
                  fmt::format("{} is {}, want an object", path, json_type_name(value)), path);
    return;
  }
  const json::object& tool = value.get_object();
  const std::string_view type = text_at(tool, "type");
  ToolTarget target{name_space, std::string(text_at(tool, "name")), type == "custom"};
  if (type == "function" || (type.empty() && !target.name.empty())) {
    add_function(tool, std::move(target), path);
  } else if (type == "custom") {
    add_custom(tool, std::move(target), path);
  } else if (type == "namespace" && name_space.empty()) {
    add_namespace(tool, path);
  } else {
    report_->ignore(path);
  }
}

void ResponseTools::add_function(const json::object& tool, ToolTarget target,
                                 const std::string& path) {
  const json::value* nested = tool.if_contains("function");
  const bool chat_form = target.name.empty() && nested != nullptr && nested->is_object();
  const json::object& from = chat_form ? nested->get_object() : tool;
  target.name = std::string(text_at(from, "name"));
  json::object function;
  for (const auto& [key, value] : from) {
    if (key != "type" && key != "defer_loading") {
      function[key] = value;
    }
  }
  push(std::move(function), std::move(target), chat_form ? path + ".function" : path);
}

void ResponseTools::add_custom(const json::object& tool, ToolTarget target,
                               const std::string& path) {
  json::object function;
  if (const json::value* name = tool.if_contains("name")) {
    function["name"] = *name;
  }
  function["description"] = std::string(text_at(tool, "description")) + format_hint(tool);
  function["parameters"] = json::object{
      {"type", "object"},
      {"properties", json::object{{key_of(kCustomInput), json::object{{"type", "string"}}}}},
      {"required", json::array{json::string(key_of(kCustomInput))}}};
  push(std::move(function), std::move(target), path);
}

void ResponseTools::add_namespace(const json::object& tool, const std::string& path) {
  const std::string name(text_at(tool, "name"));
  const json::value* tools = tool.if_contains("tools");
  if (name.empty()) {
    report_->fail(ApiErrorKind::missing_parameter, path + ".name is required", path + ".name");
    return;
  }
  if (tools == nullptr || !tools->is_array()) {
    report_->fail(ApiErrorKind::missing_parameter, path + ".tools wants an array", path + ".tools");
    return;
  }
  for (std::size_t i = 0; i < tools->get_array().size(); ++i) {
    add_tool(tools->get_array()[i], fmt::format("{}.tools[{}]", path, i), name);
  }
}

void ResponseTools::push(json::object function, ToolTarget target, const std::string& path) {
  if (!target.name.empty()) {
    std::string flat = flat_tool_name(target.name_space, target.name);
    if (skip_known_ && targets_.contains(flat)) {
      return;
    }
    function["name"] = flat;
    targets_.emplace(std::move(flat), std::move(target));
  }
  paths_->add(fmt::format("tools[{}].function", chat_tools_.size()), path);
  paths_->add(fmt::format("tools[{}]", chat_tools_.size()), path);
  chat_tools_.push_back(json::object{{"type", "function"}, {"function", std::move(function)}});
}

json::value ResponseTools::choice(const json::value& wanted) {
  if (!wanted.is_object()) {
    return wanted;
  }
  const json::object& object = wanted.get_object();
  const std::string_view type = text_at(object, "type");
  if (type == "allowed_tools") {
    return allowed_tools(object, "tool_choice");
  }
  if (type == "function" || type == "custom") {
    return named_tool(object, "tool_choice");
  }
  report_->fail(ApiErrorKind::invalid_value,
                fmt::format("tool_choice asks for a tool of type '{}', which this server has not",
                            type.substr(0, 64)),
                "tool_choice");
  return nullptr;
}

json::value ResponseTools::named_tool(const json::object& wanted, const std::string& path) {
  const json::value* nested = wanted.if_contains("function");
  const bool chat_form = nested != nullptr && nested->is_object();
  const std::string_view name = text_at(chat_form ? nested->get_object() : wanted, "name");
  const std::string flat = flat_tool_name(text_at(wanted, "namespace"), name);
  if (!targets_.contains(flat)) {
    report_->fail(
        ApiErrorKind::invalid_value,
        fmt::format("{} names '{}', which is not among the tools", path, flat.substr(0, 64)), path);
    return nullptr;
  }
  return json::object{{"type", "function"}, {"function", json::object{{"name", flat}}}};
}

json::value ResponseTools::allowed_tools(const json::object& wanted, const std::string& path) {
  const json::value* list = wanted.if_contains("tools");
  if (list == nullptr || !list->is_array()) {
    report_->fail(ApiErrorKind::missing_parameter, path + ".tools wants an array", path + ".tools");
    return nullptr;
  }
  json::array tools;
  for (std::size_t i = 0; i < list->get_array().size(); ++i) {
    const json::value& entry = list->get_array()[i];
    const std::string entry_path = fmt::format("{}.tools[{}]", path, i);
    const std::string_view type =
        entry.is_object() ? text_at(entry.get_object(), "type") : std::string_view();
    if (type == "function" || type == "custom") {
      tools.push_back(named_tool(entry.get_object(), entry_path));
    } else {
      report_->ignore(entry_path);
    }
  }
  json::object allowed{{"tools", std::move(tools)}};
  if (const json::value* mode = wanted.if_contains("mode")) {
    allowed["mode"] = *mode;
  }
  return json::object{{"type", "allowed_tools"}, {"allowed_tools", std::move(allowed)}};
}

}  // namespace sluice
