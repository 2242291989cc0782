// What a model says on its way to the client, in every dialect: each event of a stream is one line
// of JSON, and the events add up to what a whole reply says.
//
// Input: one byte of options, one for the pieces, then the text of the answer.
#include <algorithm>
#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <cstdint>
#include <cstdlib>
#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "api/anthropic/messages_reply.h"
#include "api/fields/json_text.h"
#include "api/openai/chat_reply.h"
#include "api/openai/completions.h"
#include "api/responses/responses_reply.h"
#include "api/tools/tool_fields.h"
#include "server/sse.h"

namespace {

namespace json = boost::json;

// Dialects are numbers: chat, completions, these two.
constexpr std::size_t kCompletions = 1;
constexpr std::size_t kResponses = 2;
constexpr std::size_t kMessages = 3;
constexpr std::size_t kDialects = 4;

enum Option : unsigned {
  kInsideReasoning = 1,
  kWithTools = 2,
  kWithStop = 4,
  kCut = 8,
  kInline = 16,
  kSummary = 32,
};

std::shared_ptr<const sluice::ToolSet> tools() {
  static const auto made = [] {
    auto set = std::make_shared<sluice::ToolSet>();
    sluice::FieldReport report;
    sluice::declare_tool("run", nullptr, "tool", *set, report);
    return set;
  }();
  return made;
}

std::unique_ptr<sluice::ReplyFormat> make_format(std::size_t dialect, unsigned options) {
  const sluice::ReplyHead head{.id = "resp_1", .created = 1, .model = "m", .fingerprint = "fp"};
  const sluice::TokenBytes no_bytes = [](sluice::TokenId) { return std::string_view(); };
  switch (dialect) {
    case 0:
      return std::make_unique<sluice::ChatReply>(
          head,
          sluice::ChatReplyOptions{.reasoning_format = (options & kInline) != 0
                                                           ? sluice::ReasoningFormat::inline_tags
                                                           : sluice::ReasoningFormat::both},
          no_bytes);
    case kCompletions:
      return std::make_unique<sluice::CompletionReply>(head, sluice::CompletionReplyOptions{},
                                                       no_bytes);
    case kResponses: {
      json::object echo;
      for (const char* key :
           {"instructions", "parallel_tool_calls", "previous_response_id", "reasoning", "store",
            "text", "tool_choice", "tools", "max_output_tokens", "metadata"}) {
        echo[key] = nullptr;
      }
      return std::make_unique<sluice::ResponseReply>(
          head,
          sluice::ResponseReplyOptions{.echo = std::move(echo),
                                       .summarise_reasoning = (options & kSummary) != 0,
                                       .now = [] { return std::int64_t{1}; }},
          no_bytes);
    }
    default:
      return std::make_unique<sluice::MessagesReply>(head, sluice::MessagesReplyOptions{});
  }
}

// The JSON of every event; [DONE] has none.
std::vector<json::object> parsed(const std::string& stream) {
  std::vector<json::object> events;
  std::size_t at = 0;
  while (at < stream.size()) {
    const std::size_t end = stream.find("\n\n", at);
    if (end == std::string::npos) {
      std::abort();
    }
    std::string_view block = std::string_view(stream).substr(at, end - at);
    at = end + 2;
    if (block.starts_with("event: ")) {
      block.remove_prefix(block.find('\n') + 1);
    }
    constexpr std::string_view kData = "data: ";
    if (!block.starts_with(kData) || block.find('\n') != std::string_view::npos) {
      std::abort();
    }
    block.remove_prefix(kData.size());
    if (block == "[DONE]") {
      continue;
    }
    const std::string text(block);
    auto value = sluice::parse_json(text);
    if (!value || !value->is_object() || sluice::replace_invalid_utf8(text) != text) {
      std::abort();
    }
    events.push_back(std::move(value->get_object()));
  }
  return events;
}

// What was said, by kind.
struct Said {
  std::string reasoning;
  std::string content;
  std::string arguments;
  bool operator==(const Said&) const = default;
};

bool is_one_of(std::string_view name, std::initializer_list<std::string_view> names) {
  return std::ranges::find(names, name) != names.end();
}

// Adds all strings below a value that hold text of the answer, in order.
void add_texts(const json::value& value, Said& said) {
  if (const json::array* array = value.if_array()) {
    for (const json::value& part : *array) {
      add_texts(part, said);
    }
    return;
  }
  const json::object* object = value.if_object();
  if (object == nullptr) {
    return;
  }
  const json::value* type = object->if_contains("type");
  const bool reasons = type != nullptr && (*type == "reasoning_text" || *type == "summary_text");
  for (const auto& [key, part] : *object) {
    const std::string_view name = key;
    if (!part.is_string()) {
      add_texts(part, said);
    } else if (is_one_of(name, {"reasoning", "thinking"}) || (reasons && name == "text")) {
      said.reasoning += std::string_view(part.get_string());
    } else if (is_one_of(name, {"content", "text"})) {
      said.content += std::string_view(part.get_string());
    } else if (is_one_of(name, {"arguments", "partial_json"})) {
      said.arguments += std::string_view(part.get_string());
    }
  }
}

void add_response_event(const json::object& event, Said& said) {
  const json::value* delta = event.if_contains("delta");
  if (delta == nullptr) {
    return;
  }
  const std::string_view type = event.at("type").as_string();
  std::string& text = type.starts_with("response.output_text") ? said.content
                      : type.starts_with("response.reasoning") ? said.reasoning
                                                               : said.arguments;
  text += std::string_view(delta->as_string());
}

Said said_by_stream(std::size_t dialect, const std::vector<json::object>& events) {
  Said said;
  for (const json::object& event : events) {
    if (dialect == kResponses) {
      add_response_event(event, said);
    } else if (dialect != kMessages) {
      add_texts(event.at("choices"), said);
    } else if (const json::value* delta = event.if_contains("delta")) {
      add_texts(*delta, said);
    }
  }
  return said;
}

Said said_by_whole(std::size_t dialect, const std::string& reply) {
  const auto value = sluice::parse_json(reply);
  if (!value || sluice::replace_invalid_utf8(reply) != reply) {
    std::abort();
  }
  Said said;
  add_texts(value->at(dialect == kResponses  ? "output"
                      : dialect == kMessages ? "content"
                                             : "choices"),
            said);
  return said;
}

// The next character and those after it, up to `size` bytes.
std::string_view take_piece(std::string_view& rest, std::size_t size) {
  std::size_t end = std::min(size, rest.size());
  while (end < rest.size() && (static_cast<unsigned char>(rest[end]) & 0xC0U) == 0x80U) {
    ++end;  // the decoder lets whole characters out
  }
  const std::string_view piece = rest.substr(0, end);
  rest.remove_prefix(end);
  return piece;
}

void run(std::size_t dialect, unsigned options, std::size_t step, std::string_view text) {
  sluice::AnswerRules rules{.starts_inside_reasoning = (options & kInsideReasoning) != 0};
  if ((options & kWithTools) != 0) {
    rules.tools = tools();
    rules.new_call_id = [] { return std::string("call_1"); };
  }
  if ((options & kWithStop) != 0) {
    rules.stop = {"stop", "\n\n\n"};
  }
  if (dialect == kCompletions) {  // plain text
    rules = {.stop = rules.stop};
  }
  const auto streamed = make_format(dialect, options);
  const auto whole = make_format(dialect, options);
  sluice::AnswerParser parser(rules);
  sluice::ChoiceAnswer answer;
  std::string stream = sluice::sse_text(streamed->begin({}));
  const auto take = [&](std::vector<sluice::AnswerDelta> deltas) {
    for (sluice::AnswerDelta& delta : deltas) {
      stream += sluice::sse_text(streamed->delta(0, delta, {}, {}));
      answer.add(std::move(delta));
    }
  };
  while (!text.empty() && !parser.has_ended()) {
    take(parser.append(sluice::TokenEvent{}, take_piece(text, step)));
  }
  const bool cut = (options & kCut) != 0 && !parser.has_ended();
  take(parser.finish("", cut));
  answer.end = {.reason = cut ? sluice::FinishReason::length : sluice::FinishReason::stop,
                .stop_text = parser.stop_text(),
                .has_complete_call = parser.complete_call_count() > 0};
  stream += sluice::sse_text(streamed->end(0, answer.end, {}, {}));
  stream += sluice::sse_text(streamed->finish({}));
  Said said = said_by_stream(dialect, parsed(stream));
  if (dialect == kMessages) {
    said.arguments.clear();  // the input of a whole message's call is an object
  }
  if (said_by_whole(dialect, whole->whole(std::span(&answer, 1), {})) != said) {
    std::abort();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  constexpr std::size_t kSizeMax = 400;  // every character is an event in four dialects
  if (size < 2 || size > kSizeMax) {
    return 0;
  }
  const std::string text = sluice::replace_invalid_utf8(
      std::string_view(reinterpret_cast<const char*>(data) + 2, size - 2));
  for (std::size_t dialect = 0; dialect < kDialects; ++dialect) {
    run(dialect, data[0], std::size_t{1} + data[1], text);
  }
  return 0;
}
