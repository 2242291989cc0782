#include "api/tools/call_grammar.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

namespace sluice {
namespace {

constexpr std::string_view kAnyText = R"((?:.|\n)*)";

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

std::string parameter_pattern(std::string_view key, std::string_view value) {
  return fmt::format(R"(<parameter={}>\n(?:{})\n<\/parameter>\n)", key, value);
}

// Everything between "<function=NAME>\n" and "</function>".
std::string parameters_pattern(const Tool& tool) {
  std::string pattern;
  if (tool.strict) {
    for (const ToolParameter& parameter : tool.parameters) {
      pattern += fmt::format(
          "(?:{}){}", parameter_pattern(escaped(parameter.name), value_pattern(parameter.type)),
          parameter.required ? "" : "?");
    }
    return pattern;
  }
  for (const ToolParameter& parameter : tool.parameters) {
    add_choice(pattern, escaped(parameter.name));
  }
  if (pattern.empty()) {
    return pattern;
  }
  return fmt::format("(?:{})*", parameter_pattern("(?:" + pattern + ")", kAnyText));
}

}  // namespace

std::string make_call_grammar(const ToolSet& tools, const CallGrammarOptions& options) {
  std::string functions;
  for (const Tool& tool : tools.tools) {
    const auto& allowed = options.allowed;
    if (allowed.empty() || std::ranges::find(allowed, tool.name) != allowed.end()) {
      add_choice(functions, escaped(tool.name) + R"(>\n)" + parameters_pattern(tool));
    }
  }
  std::string grammar = options.one_call ? "calls: call\n" : "calls: call (\"\\n\" call)*\n";
  grammar += options.may_answer ? "start: TEXT | TEXT calls | calls\nTEXT: /(?:.|\\n)+/\n"
                                : "start: calls\n";
  grammar += "call: <tool_call> BODY </tool_call>\n";
  grammar += fmt::format(R"(BODY: /\n<function=(?:{})<\/function>\n/)", functions) + "\n";
  return grammar;
}

}  // namespace sluice
