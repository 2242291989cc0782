#include "api/answer/json_call.h"

#include "api/answer/json_literal.h"

namespace sluice {

std::optional<std::size_t> JsonObjectEnd::find(std::string_view text) {
  for (; at_ < text.size(); ++at_) {
    const char c = text[at_];
    if (escaped_) {
      escaped_ = false;
    } else if (in_string_) {
      escaped_ = c == '\\';
      in_string_ = c != '"';
    } else if (c == '"') {
      in_string_ = true;
    } else if (c == '{') {
      ++depth_;
    } else if (c == '}' && --depth_ == 0) {
      return at_ + 1;
    }
  }
  return std::nullopt;
}

std::optional<JsonCall> read_json_call(std::string_view text, const ToolSet& tools) {
  const auto members = read_json_members(text);
  if (!members) {
    return std::nullopt;
  }
  JsonCall call{.name = {}, .arguments = "{}"};
  for (const auto& [key, value] : *members) {
    if (key == R"("name")") {
      for (const Tool& tool : tools.tools) {
        call.name = value == json_string(tool.name) ? tool.name : call.name;
      }
    } else if (key == R"("arguments")" && value != "null") {
      call.arguments = value;
    }
  }
  const bool valid = !call.name.empty() && call.arguments.starts_with('{');
  return valid ? std::optional(std::move(call)) : std::nullopt;
}

}  // namespace sluice
