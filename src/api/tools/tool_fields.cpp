#include "api/tools/tool_fields.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <boost/json/object.hpp>
#include <optional>
#include <utility>
#include <vector>

#include "api/answer/call_markup.h"
#include "api/tools/call_grammar.h"

namespace sluice {
namespace {

namespace json = boost::json;

// Hints to the server: not shown to the model, so that a hint that moves does not change the
// prompt.
constexpr std::array<std::string_view, 3> kHints{"defer_loading", "cache_control",
                                                 "prompt_cache_breakpoint"};

json::object without_hints(const json::object& object) {
  json::object kept;
  for (const auto& [key, value] : object) {
    if (std::ranges::find(kHints, std::string_view(key)) == kHints.end()) {
      kept[key] = value;
    }
  }
  return kept;
}

bool is_tool_name(std::string_view name) {
  return !name.empty() && name.size() <= kToolNameBytesMax &&
         name.find_first_of(" \t\r\n\f\v<>") == std::string_view::npos;
}

bool is_required(std::string_view key, const json::object& schema) {
  const json::value* list = schema.if_contains("required");
  return list != nullptr && list->is_array() &&
         std::ranges::any_of(list->get_array(), [&](const json::value& name) {
           return name.is_string() && std::string_view(name.get_string()) == key;
         });
}

// Whether a schema asks for properties that it does not name.
bool allows_others(const json::object& schema) {
  const json::value* others = schema.if_contains("additionalProperties");
  const bool wanted =
      others != nullptr && (others->is_object() || (others->is_bool() && others->get_bool()));
  return wanted || schema.contains("patternProperties");
}

void read_tool(const json::value& value, const std::string& path, ToolSet& tools,
               json::array& prompt_tools, FieldReport& report) {
  if (!value.is_object()) {
    report.fail(ApiErrorKind::invalid_type,
                fmt::format("{} is {}, want an object", path, json_type_name(value)), path);
    return;
  }
  JsonFields tool(value.get_object(), path, report);
  const std::string type = tool.string("type").value_or("function");
  if (type != "function") {
    report.fail(ApiErrorKind::unsupported_tool,
                fmt::format("{}.type is '{}', this endpoint knows functions only", path,
                            type.substr(0, 64)),
                path + ".type");
    return;
  }
  auto function = tool.object("function");
  JsonFields& fields = function ? *function : tool;
  const auto name = fields.string("name");
  fields.string("description");
  const bool strict = fields.boolean("strict").value_or(false);
  bool deferred = tool.boolean("defer_loading").value_or(false);
  deferred = fields.boolean("defer_loading").value_or(false) || deferred;
  if (report.failed()) {
    return;
  }
  if (!name) {
    report.fail(ApiErrorKind::missing_parameter,
                fmt::format("{} is required", fields.path_of("name")), fields.path_of("name"));
    return;
  }
  declare_tool(*name, fields.find("parameters"), fields.path(), tools, report, strict);
  if (deferred) {
    return;
  }
  json::object shown = without_hints(value.get_object());
  if (function) {
    shown["function"] = without_hints(value.get_object().at("function").get_object());
  } else {
    shown.erase("type");
    shown = json::object{{"type", "function"}, {"function", std::move(shown)}};
  }
  prompt_tools.push_back(std::move(shown));
}

// The name in {"function": {"name"}} or {"name"}.
std::optional<std::string> read_named_function(JsonFields& choice) {
  auto function = choice.object("function");
  return (function ? *function : choice).string("name");
}

void check_declared(const std::optional<std::string>& name, const std::string& path,
                    const ToolSet& tools, FieldReport& report) {
  if (!name) {
    report.fail(ApiErrorKind::missing_parameter, fmt::format("{} names no function", path), path);
  } else if (tools.find(*name) == nullptr) {
    report.fail(ApiErrorKind::invalid_value,
                fmt::format("{} names '{}', which is not one of the tools", path,
                            name->substr(0, kToolNameBytesMax)),
                path);
  }
}

// What tool_choice demands beyond auto and none.
struct Demand {
  std::vector<std::string> allowed = {};  // empty: all tools
  bool call = true;                       // else an answer without calls is fine too
  bool one_call = false;                  // exactly one
};

void read_allowed_tools(JsonFields& choice, const ToolSet& tools, Demand& demand) {
  FieldReport& report = choice.report();
  auto nested = choice.object("allowed_tools");
  JsonFields& allowed = nested ? *nested : choice;
  const std::string mode = allowed.string("mode").value_or("auto");
  demand.call = mode == "required";
  if (mode != "auto" && mode != "required") {
    report.fail(ApiErrorKind::invalid_value,
                fmt::format("{} is '{}', want auto or required", allowed.path_of("mode"),
                            mode.substr(0, 64)),
                allowed.path_of("mode"));
  }
  const json::array* list = allowed.array("tools");
  if (list == nullptr || list->empty()) {
    report.fail(ApiErrorKind::missing_parameter,
                fmt::format("{} names no tool", allowed.path_of("tools")),
                allowed.path_of("tools"));
    return;
  }
  for (std::size_t i = 0; i < list->size(); ++i) {
    const std::string path = fmt::format("{}[{}]", allowed.path_of("tools"), i);
    const json::object* entry = (*list)[i].if_object();
    if (entry == nullptr) {
      report.fail(ApiErrorKind::invalid_type, fmt::format("{} is not an object", path), path);
      return;
    }
    JsonFields fields(*entry, path, report);
    const auto name = read_named_function(fields);
    check_declared(name, path, tools, report);
    demand.allowed.push_back(name.value_or(""));
  }
}

void read_choice_object(JsonFields choice, const ToolSet& tools, Demand& demand) {
  FieldReport& report = choice.report();
  const std::string type = choice.string("type").value_or("function");
  if (type == "function") {
    const auto name = read_named_function(choice);
    check_declared(name, choice.path(), tools, report);
    demand.allowed.push_back(name.value_or(""));
    demand.one_call = true;
  } else if (type == "allowed_tools") {
    read_allowed_tools(choice, tools, demand);
  } else {
    report.fail(
        ApiErrorKind::invalid_value,
        fmt::format("tool_choice.type is '{}', want function or allowed_tools", type.substr(0, 64)),
        "tool_choice.type");
  }
}

// Nothing for auto and none, and after an error.
std::optional<Demand> read_demand(JsonFields& body, const ToolSet& tools, ToolUse& use) {
  const json::value* value = body.find("tool_choice");
  if (value == nullptr) {
    return std::nullopt;
  }
  FieldReport& report = body.report();
  if (value->is_string()) {
    const std::string choice = *body.string("tool_choice");
    use.forbidden = choice == "none";
    if (use.forbidden || choice == "auto") {
      return std::nullopt;
    }
    if (choice != "required" && choice != "any") {
      report.fail(ApiErrorKind::invalid_value,
                  fmt::format("tool_choice is '{}', want auto, none, required or an object",
                              choice.substr(0, 64)),
                  "tool_choice");
    }
  }
  if (tools.tools.empty()) {
    report.fail(ApiErrorKind::invalid_value, "tool_choice asks for a tool, but there is none",
                "tool_choice");
    return std::nullopt;
  }
  Demand demand;
  if (!value->is_string()) {
    if (auto choice = body.object("tool_choice")) {
      read_choice_object(*choice, tools, demand);
    }
  }
  return report.failed() ? std::nullopt : std::optional(std::move(demand));
}

bool can_compile(const RequestLimits& limits) {
  return limits.grammars != nullptr && limits.grammars->tokenizer().token_id(kCallOpen) &&
         limits.grammars->tokenizer().token_id(kCallClose);
}

std::shared_ptr<const CompiledGrammar> compile_demand(Demand demand, const ToolFields& fields,
                                                      const ToolSet& tools,
                                                      const RequestLimits& limits,
                                                      FieldReport& report) {
  if (!can_compile(limits)) {
    report.fail(ApiErrorKind::unsupported_parameter,
                "tool_choice is not supported: this model has no tokens for calls", "tool_choice");
    return nullptr;
  }
  CallGrammarOptions options{.allowed = std::move(demand.allowed),
                             .one_call = demand.one_call || fields.use.one_call,
                             .may_answer = !demand.call};
  // A form to be filled in is often given as the only function, and seldom as a strict one.
  const std::size_t choices = options.allowed.empty() ? tools.tools.size() : options.allowed.size();
  options.typed = demand.call && choices == 1;
  const auto compile = [&] {
    return limits.grammars->compile(
        {.kind = GrammarKind::lark, .text = make_call_grammar(tools, options)});
  };
  auto grammar = compile();
  if (!grammar && options.typed) {  // too large, say
    options.typed = false;
    grammar = compile();
  }
  if (!grammar) {
    report.fail(ApiErrorKind::invalid_value,
                fmt::format("tools cannot be made a grammar: {}", grammar.error().message),
                "tools");
    return nullptr;
  }
  return std::move(*grammar);
}

// Nobody asked for it: where it cannot be, calls are free, and `strict` has no effect.
std::shared_ptr<const CompiledGrammar> compile_own_calls(const ToolSet& tools, bool one_call,
                                                         const RequestLimits& limits,
                                                         FieldReport& report) {
  if (can_compile(limits)) {
    const std::string text = make_call_grammar(tools, {.one_call = one_call, .free_form = true});
    if (auto grammar = limits.grammars->compile({.kind = GrammarKind::lark, .text = text})) {
      return std::move(*grammar);
    }
  }
  for (std::size_t i = 0; i < tools.tools.size(); ++i) {
    if (tools.tools[i].strict) {
      report.ignore(fmt::format("tools[{}].strict", i));
    }
  }
  return nullptr;
}

}  // namespace

ToolFields read_tool_fields(JsonFields& body, const RequestLimits& limits) {
  ToolFields fields;
  auto tools = std::make_shared<ToolSet>();
  tools->fence_guard = limits.tool_fence_guard;
  if (const json::array* list = body.array("tools")) {
    for (std::size_t i = 0; i < list->size() && !body.report().failed(); ++i) {
      read_tool((*list)[i], fmt::format("tools[{}]", i), *tools, fields.prompt_tools,
                body.report());
    }
  }
  fields.use.one_call = !body.boolean("parallel_tool_calls").value_or(true);
  if (auto demand = read_demand(body, *tools, fields.use)) {
    fields.use.must_call = demand->call;
    fields.use.grammar = compile_demand(std::move(*demand), fields, *tools, limits, body.report());
  } else if (!fields.use.forbidden && !tools->tools.empty() && !body.report().failed()) {
    fields.use.calls = compile_own_calls(*tools, fields.use.one_call, limits, body.report());
  }
  if (!tools->tools.empty()) {
    fields.use.tools = std::move(tools);
  }
  return fields;
}

void take_call_grammar(const ToolUse& use, ConstraintFields& constraint, FieldReport& report) {
  constraint.calls = use.calls;
  if (use.grammar == nullptr) {
    return;
  }
  if (constraint.grammar != nullptr && !use.must_call) {
    report.fail(ApiErrorKind::unsupported_parameter,
                "allowed_tools is not supported together with a form of the content",
                "tool_choice");
  }
  constraint.grammar = use.grammar;
  constraint.grammar_has_calls = true;
}

void declare_tool(const std::string& name, const json::value* parameters, const std::string& path,
                  ToolSet& tools, FieldReport& report, bool strict) {
  const auto fail = [&](std::string_view field, const std::string& message) {
    report.fail(ApiErrorKind::invalid_value, message, fmt::format("{}.{}", path, field));
  };
  if (!is_tool_name(name)) {
    fail("name", fmt::format("{}.name is '{}': want 1 to {} bytes without white space, '<' and '>'",
                             path, name.substr(0, 64), kToolNameBytesMax));
    return;
  }
  if (tools.find(name) != nullptr) {
    fail("name", fmt::format("{}.name is '{}', which another tool has", path, name));
    return;
  }
  if (tools.tools.size() == kToolsMax) {
    fail("name", fmt::format("there are more than {} tools", kToolsMax));
    return;
  }
  if (parameters != nullptr && !parameters->is_object()) {
    fail("parameters",
         fmt::format("{}.parameters is {}, want an object", path, json_type_name(*parameters)));
    return;
  }
  Tool tool{.name = name, .parameters = {}, .strict = strict};
  tool.open = parameters != nullptr && allows_others(parameters->get_object());
  const json::value* properties =
      parameters != nullptr ? parameters->get_object().if_contains("properties") : nullptr;
  if (properties != nullptr && properties->is_object()) {
    for (const auto& [key, schema] : properties->get_object()) {
      tool.parameters.push_back({.name = std::string(key),
                                 .type = read_parameter_type(schema, *parameters),
                                 .required = is_required(key, parameters->get_object())});
    }
  }
  tools.tools.push_back(std::move(tool));
}

}  // namespace sluice
