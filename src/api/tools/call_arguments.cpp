#include "api/tools/call_arguments.h"

#include <string>
#include <string_view>
#include <vector>

#include "api/fields/json_text.h"

namespace sluice {
namespace {

namespace json = boost::json;

constexpr int kRepairTriesMax = 16;  // each one parses the whole text again

// Positions of the commas between the outermost members.
std::vector<std::size_t> member_ends(std::string_view text) {
  std::vector<std::size_t> ends;
  int depth = 0;
  bool in_string = false;
  for (std::size_t at = 0; at < text.size(); ++at) {
    const char c = text[at];
    if (in_string) {
      at += c == '\\' ? 1 : 0;
      in_string = c != '"';
    } else if (c == '"') {
      in_string = true;
    } else if (c == '{' || c == '[') {
      ++depth;
    } else if (c == '}' || c == ']') {
      --depth;
    } else if (c == ',' && depth == 1) {
      ends.push_back(at);
    }
  }
  return ends;
}

// A last value that ends in one of these is complete; a number may have been cut.
bool ends_complete(std::string_view text) {
  const std::size_t last = text.find_last_not_of(" \t\r\n");
  return last != std::string_view::npos &&
         std::string_view("\"}]el").find(text[last]) != std::string_view::npos;
}

json::object repair(std::string_view text) {
  if (ends_complete(text)) {
    if (auto value = parse_json(std::string(text) + "}"); value && value->is_object()) {
      return std::move(value->get_object());
    }
  }
  const std::vector<std::size_t> ends = member_ends(text);
  int tries = 0;
  for (auto end = ends.rbegin(); end != ends.rend() && tries < kRepairTriesMax; ++end, ++tries) {
    auto value = parse_json(std::string(text.substr(0, *end)) + "}");
    if (value && value->is_object()) {
      return std::move(value->get_object());
    }
  }
  return {};
}

}  // namespace

json::object tool_call_arguments(const json::value& arguments) {
  if (arguments.is_object()) {
    return arguments.get_object();
  }
  if (!arguments.is_string()) {
    return {};
  }
  const std::string_view text(arguments.get_string().data(), arguments.get_string().size());
  auto value = parse_json(std::string(text));
  if (!value) {
    return repair(text);
  }
  return value->is_object() ? std::move(value->get_object()) : json::object{};
}

}  // namespace sluice
