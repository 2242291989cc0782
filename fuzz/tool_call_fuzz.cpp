// Answers with tool calls, split anywhere: whatever a model writes and however the text arrives,
// the parser says the same, and the arguments of every complete call are a JSON object.
//
// Input: one byte of options, one byte for the splits, then the text.
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <boost/json/object.hpp>

#include "api/answer/answer_parser.h"
#include "api/fields/json_text.h"
#include "api/tools/tool_fields.h"

namespace {

struct Said {
  std::string reasoning;
  std::string content;
  std::vector<std::string> calls;  // name, then arguments
  std::size_t complete = 0;
  bool operator==(const Said&) const = default;
};

std::shared_ptr<const sluice::ToolSet> make_tools() {
  const auto schema = sluice::parse_json(
      R"({"properties":{"path":{"type":"string"},"limit":{"type":["integer","null"]},"x":{}}})");
  auto tools = std::make_shared<sluice::ToolSet>();
  sluice::FieldReport report;
  sluice::declare_tool("read", &*schema, "tool", *tools, report);
  sluice::declare_tool("run", nullptr, "tool", *tools, report);
  return tools;
}

Said parse(std::string_view text, std::size_t step, std::uint8_t options) {
  static const std::shared_ptr<const sluice::ToolSet> tools = make_tools();
  sluice::AnswerParser parser({.starts_inside_reasoning = (options & 1U) != 0,
                               .tools = tools,
                               .new_call_id = [] { return std::string("id"); },
                               .one_call = (options & 2U) != 0});
  Said said;
  const auto take = [&](const std::vector<sluice::AnswerDelta>& deltas) {
    for (const sluice::AnswerDelta& delta : deltas) {
      if (delta.call) {
        said.calls.push_back(delta.call->name);
        said.calls.emplace_back();
      }
      (delta.part == sluice::AnswerPart::call        ? said.calls.back()
       : delta.part == sluice::AnswerPart::reasoning ? said.reasoning
                                                     : said.content) += delta.text;
    }
  };
  for (std::size_t at = 0; at < text.size(); at += step) {
    take(parser.append(sluice::TokenEvent{}, text.substr(at, step)));
  }
  take(parser.finish("", (options & 4U) != 0));
  said.complete = parser.complete_call_count();
  return said;
}

bool is_utf8_object(const std::string& text) {
  const auto value = sluice::parse_json(sluice::replace_invalid_utf8(text));
  return value && value->is_object();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 2) {
    return 0;
  }
  const std::string_view text(reinterpret_cast<const char*>(data) + 2, size - 2);
  const Said whole = parse(text, text.size() + 1, data[0]);
  if (parse(text, 1, data[0]) != whole || parse(text, std::size_t{1} + data[1], data[0]) != whole) {
    std::abort();
  }
  for (std::size_t i = 0; i < whole.complete; ++i) {
    if (!is_utf8_object(whole.calls[2 * i + 1])) {
      std::abort();
    }
  }
  return 0;
}
