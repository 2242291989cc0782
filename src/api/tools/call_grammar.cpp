#include "api/tools/call_grammar.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

namespace sluice {
namespace {

constexpr std::string_view kAnyText = R"((?:.|\n)*)";
constexpr std::size_t kTypedPatternsMax = 256;  // of one tool; a grammar is compiled for a request

std::string escaped(std::string_view text) {
  constexpr std::string_view kMeta = R"(\.+*?()|[]{}^$#&-~/)";
  std::string pattern;
  for (const char c : text) {
    if (c == '\n') {
      pattern += "\\n";
      continue;
    }
    pattern += kMeta.contains(c) ? "\\" : "";
    pattern += c;
  }
  return pattern;
}

void add_choice(std::string& pattern, std::string_view choice) {
  pattern += pattern.empty() ? "" : "|";
  pattern += choice;
}

std::string value_pattern(const ParameterType& type) {
  std::string pattern;
  if (!type.members.empty()) {
    for (const ParameterType::Member& member : type.members) {
      add_choice(pattern, escaped(member.text));
    }
    return pattern;
  }
  if (type.is_open() || type.string) {
    return std::string(kAnyText);
  }
  if (type.null) {
    add_choice(pattern, "null");
  }
  if (type.boolean) {
    add_choice(pattern, "true|false");
  }
  if (type.integer || type.number) {
    add_choice(pattern, R"(-?(?:0|[1-9][0-9]{0,40}))");
  }
  if (type.number) {
    add_choice(pattern, R"(-?(?:0|[1-9][0-9]{0,40})(?:\.[0-9]{1,40})?(?:[eE][+-]?[0-9]{1,3})?)");
  }
  if (type.object) {
    add_choice(pattern, fmt::format(R"(\{{{}\}})", kAnyText));
  }
  if (type.array) {
    add_choice(pattern, fmt::format(R"(\[{}\])", kAnyText));
  }
  return pattern;
}

// How a call is written; patterns.
struct Form {
  std::string_view gap;     // between tags
  std::string_view edge;    // between a tag and a value
  std::string_view equals;  // in a tag
};

constexpr Form kTemplateForm{.gap = R"(\n)", .edge = R"(\n)", .equals = "="};
constexpr Form kFreeForm{.gap = R"([ \t\r\n]{0,8})", .edge = R"(\n?)", .equals = " ?= ?"};

std::string parameter_pattern(const Form& form, std::string_view key, std::string_view value) {
  return fmt::format(R"(<parameter{}{}>{}(?:{}){}<\/parameter>{})", form.equals, key, form.edge,
                     value, form.edge, form.gap);
}

// How many parameter patterns typed_pattern() has.
std::size_t typed_pattern_count(const Tool& tool) {
  const auto required =
      static_cast<std::size_t>(std::ranges::count_if(tool.parameters, &ToolParameter::required));
  return required + (required + 1) * (tool.parameters.size() - required);
}

std::string typed_pattern(const Form& form, const Tool& tool) {
  std::string others;
  for (const ToolParameter& parameter : tool.parameters) {
    if (!parameter.required) {
      add_choice(others,
                 parameter_pattern(form, escaped(parameter.name), value_pattern(parameter.type)));
    }
  }
  others = others.empty() ? "" : fmt::format("(?:{})*", others);
  std::string pattern = others;
  for (const ToolParameter& parameter : tool.parameters) {
    if (parameter.required) {
      pattern +=
          parameter_pattern(form, escaped(parameter.name), value_pattern(parameter.type)) + others;
    }
  }
  return pattern;
}

// Everything between "<function=NAME>" and "</function>".
std::string parameters_pattern(const Form& form, const Tool& tool, bool typed) {
  std::string pattern(form.gap);
  if (typed && !tool.strict && !tool.open && typed_pattern_count(tool) <= kTypedPatternsMax) {
    return pattern + typed_pattern(form, tool);
  }
  if (tool.strict) {
    for (const ToolParameter& parameter : tool.parameters) {
      pattern += fmt::format(
          "(?:{}){}",
          parameter_pattern(form, escaped(parameter.name), value_pattern(parameter.type)),
          parameter.required ? "" : "?");
    }
    return pattern;
  }
  std::string keys;
  for (const ToolParameter& parameter : tool.parameters) {
    add_choice(keys, escaped(parameter.name));
  }
  if (tool.open) {
    keys = R"([^ \t\r\n<>=]{1,256})";
  }
  if (!keys.empty()) {
    pattern += fmt::format("(?:{})*", parameter_pattern(form, "(?:" + keys + ")", kAnyText));
  }
  return pattern;
}

}  // namespace

std::string make_call_grammar(const ToolSet& tools, const CallGrammarOptions& options) {
  const Form& form = options.free_form ? kFreeForm : kTemplateForm;
  std::string functions;
  for (const Tool& tool : tools.tools) {
    const auto& allowed = options.allowed;
    if (allowed.empty() || std::ranges::find(allowed, tool.name) != allowed.end()) {
      add_choice(functions,
                 escaped(tool.name) + ">" + parameters_pattern(form, tool, options.typed));
    }
  }
  std::string grammar = options.one_call ? "calls: call\n" : "calls: call (\"\\n\" call)*\n";
  grammar += options.may_answer ? "start: TEXT | TEXT calls | calls\nTEXT: /(?:.|\\n)+/\n"
                                : "start: calls\n";
  grammar += "call: <tool_call> BODY </tool_call>\n";
  grammar += fmt::format(R"(BODY: /{}<function{}(?:{})<\/function>{}/)", form.gap, form.equals,
                         functions, form.gap);
  return grammar + "\n";
}

}  // namespace sluice
