// For tests: an answer parsed piece by piece, as the reply would say it.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <ostream>
#include <string>
#include <string_view>
#include <vector>

#include "api/answer/answer_parser.h"
#include "api/fields/json_text.h"
#include "api/tools/tool_fields.h"

namespace sluice {

struct ParsedCall {
  std::string name;
  std::string arguments;
  bool operator==(const ParsedCall&) const = default;
};

inline std::ostream& operator<<(std::ostream& out, const ParsedCall& call) {
  return out << call.name << call.arguments;
}

struct ParsedAnswer {
  std::string reasoning;
  std::string content;
  std::vector<ParsedCall> calls;
  std::size_t complete_calls = 0;
  bool operator==(const ParsedAnswer&) const = default;
};

inline std::ostream& operator<<(std::ostream& out, const ParsedAnswer& answer) {
  out << "[" << answer.reasoning << "|" << answer.content << "|" << answer.complete_calls << ":";
  for (const ParsedCall& call : answer.calls) {
    out << call << ";";
  }
  return out << "]";
}

// A JSON object: names of tools and the properties of their parameters.
inline std::shared_ptr<const ToolSet> make_tools(const std::string& json) {
  const auto value = parse_json(json);
  FieldReport report;
  auto tools = std::make_shared<ToolSet>();
  for (const auto& [name, properties] : value->get_object()) {
    const boost::json::value schema = boost::json::object{{"properties", properties}};
    declare_tool(std::string(name), &schema, "tool", *tools, report);
  }
  EXPECT_FALSE(report.failed());
  return tools;
}

struct ParseOptions {
  std::shared_ptr<const ToolSet> tools;
  bool inside_reasoning = false;
  bool cut = false;
  bool one_call = false;
};

inline ParsedAnswer parse_answer(const std::vector<std::string>& pieces,
                                 const ParseOptions& options) {
  int id = 0;
  AnswerParser parser({.starts_inside_reasoning = options.inside_reasoning,
                       .tools = options.tools,
                       .new_call_id = [&id] { return "call_" + std::to_string(id++); },
                       .call_token = 1,
                       .one_call = options.one_call});
  ParsedAnswer answer;
  const auto take = [&](const std::vector<AnswerDelta>& deltas) {
    for (const AnswerDelta& delta : deltas) {
      if (delta.part != AnswerPart::call) {
        EXPECT_FALSE(delta.text.empty());
        (delta.part == AnswerPart::reasoning ? answer.reasoning : answer.content) += delta.text;
      } else if (delta.call) {
        EXPECT_EQ(delta.call->id, "call_" + std::to_string(answer.calls.size()));
        EXPECT_TRUE(delta.text.empty());
        answer.calls.push_back({delta.call->name, ""});
      } else {
        answer.calls.back().arguments += delta.text;
      }
    }
  };
  for (const std::string& piece : pieces) {
    TokenEvent token;
    token.token_id = 0;
    take(parser.append(token, piece));
  }
  take(parser.finish("", options.cut));
  answer.complete_calls = parser.complete_call_count();
  return answer;
}

// Split at every byte into two, into single bytes, and not at all: all must be equal.
inline ParsedAnswer parse_everywhere(const std::string& text, const ParseOptions& options) {
  ParsedAnswer whole = parse_answer({text}, options);
  std::vector<std::string> bytes;
  for (std::size_t at = 0; at < text.size(); ++at) {
    EXPECT_EQ(parse_answer({text.substr(0, at), text.substr(at)}, options), whole)
        << text << "\nsplit at " << at;
    bytes.push_back(text.substr(at, 1));
  }
  EXPECT_EQ(parse_answer(bytes, options), whole) << text;
  return whole;
}

}  // namespace sluice
