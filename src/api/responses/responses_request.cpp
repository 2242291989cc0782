// See responses_request.h. Fields that only this dialect has are read here and taken out of the
// body; the rest goes to the parser of chat requests as it is.
#include "api/responses/responses_request.h"

#include <fmt/format.h>

#include <utility>

#include "api/fields/json_text.h"
#include "api/fields/path_map.h"
#include "api/responses/responses_items.h"

namespace sluice {
namespace {

namespace json = boost::json;

// No effect: either nothing here does what they ask for, or they belong to chat requests only.
constexpr std::string_view kIgnored[] = {
    "truncation",   "max_tool_calls",   "context_management",    "stream_options",
    "service_tier", "messages",         "response_format",       "logprobs",
    "max_tokens",   "return_token_ids", "max_completion_tokens", "reasoning_format"};

void erase(json::object& object, std::string_view key) {
  object.erase(json::string_view(key.data(), key.size()));
}

class ResponsesParser {
 public:
  ResponsesParser(const json::object& body, const ResponseArchive& archive)
      : archive_(&archive), chat_body_(body), body_(body, "", report_) {}

  ApiResult<ResponsesRequest> parse(const ChatDefaults& defaults, const RequestLimits& limits);

 private:
  void read_input(ResponseItemReader& items);
  void read_previous(ResponseItemReader& items);
  void read_conversation();
  void read_tools();
  void read_tool_choice();
  void read_text();
  void read_reasoning();
  void read_include();
  void read_lengths();
  void refuse_unsupported();
  void take(std::string_view key) { erase(chat_body_, key); }
  ApiError with_source(ApiError error) const;

  const ResponseArchive* archive_;
  json::object chat_body_;
  FieldReport report_;
  JsonFields body_;
  PathMap paths_;
  ResponseTools tools_{report_, paths_};
  ResponsesRequest request_;
};

void ResponsesParser::read_previous(ResponseItemReader& items) {
  request_.previous_response_id = body_.string("previous_response_id");
  take("previous_response_id");
  const auto& id = request_.previous_response_id;
  if (!id) {
    return;
  }
  const auto conversation =
      id->size() <= kResponseIdBytesMax ? archive_->conversation(*id) : std::nullopt;
  if (!conversation) {
    report_.fail(ApiErrorKind::previous_response_not_found,
                 fmt::format("Previous response with id '{}' not found.", id->substr(0, 64)),
                 "previous_response_id");
    return;
  }
  items.add_items(*conversation, "previous_response_id");
}

void ResponsesParser::read_input(ResponseItemReader& items) {
  const json::value* input = body_.find("input");
  take("input");
  if (input == nullptr) {
    if (!request_.previous_response_id) {
      report_.fail(ApiErrorKind::missing_parameter, "input is required", "input");
    }
    return;
  }
  if (input->is_array()) {
    items.add_items(input->get_array(), "input");
    if (!report_.failed()) {
      request_.input_items = ResponseItemReader::resolved(input->get_array(), *archive_);
    }
    return;
  }
  if (const auto text = body_.string("input"); text && !text->empty()) {
    items.add_message("user", *text, "input");
    request_.input_items.push_back(json::object{
        {"type", "message"},
        {"role", "user"},
        {"content", json::array{json::object{{"type", "input_text"}, {"text", *text}}}}});
  }
}

void ResponsesParser::read_conversation() {
  ResponseItemReader items(*archive_, report_, paths_, tools_);
  const auto instructions = body_.string("instructions");
  take("instructions");
  if (instructions && !instructions->empty()) {
    items.add_message("system", *instructions, "instructions");
  }
  read_previous(items);
  read_input(items);
  json::array messages = items.take_messages();
  if (messages.empty()) {  // a probe; the templates want something to answer
    messages.push_back(json::object{{"role", "user"}, {"content", ""}});
  }
  chat_body_["messages"] = std::move(messages);
  request_.echo["instructions"] =
      instructions ? json::value(json::string(*instructions)) : json::value(nullptr);
}

void ResponsesParser::read_tools() {
  const json::array* tools = body_.array("tools");
  take("tools");
  if (tools != nullptr) {
    tools_.add(*tools, "tools");
  }
  request_.echo["tools"] = tools != nullptr ? *tools : json::array();
}

// After the items, which may bring tools.
void ResponsesParser::read_tool_choice() {
  const json::value* choice = body_.find("tool_choice");
  take("tool_choice");
  request_.echo["tool_choice"] = choice != nullptr ? *choice : json::value("auto");
  paths_.add("tool_choice.allowed_tools", "tool_choice");
  if (choice != nullptr && !report_.failed()) {
    chat_body_["tool_choice"] = tools_.choice(*choice);
  }
  if (!tools_.chat_tools().empty()) {
    chat_body_["tools"] = tools_.chat_tools();
  }
  request_.tool_targets = tools_.targets();
  request_.echo["parallel_tool_calls"] = body_.boolean("parallel_tool_calls").value_or(true);
}

void ResponsesParser::read_text() {
  json::object echo{{"format", json::object{{"type", "text"}}}};
  auto text = body_.object("text");
  take("text");
  if (text) {
    if (const auto verbosity = text->string("verbosity")) {
      echo["verbosity"] = *verbosity;
      report_.ignore("text.verbosity");
    }
    if (auto format = text->object("format")) {
      const json::object& sent = text->find("format")->get_object();
      echo["format"] = sent;
      json::object chat_format{{"type", format->string("type").value_or("text")}};
      paths_.add("response_format", "text.format");
      if (chat_format["type"] == "json_schema") {
        paths_.add("response_format.json_schema", "text.format");
        json::object schema = sent;
        schema.erase("type");
        chat_format["json_schema"] = std::move(schema);
      }
      chat_body_["response_format"] = std::move(chat_format);
    }
    text->ignore_rest();
  }
  request_.echo["text"] = std::move(echo);
}

void ResponsesParser::read_reasoning() {
  json::object echo{{"effort", nullptr}, {"summary", nullptr}};
  if (auto reasoning = body_.object("reasoning")) {
    auto summary = reasoning->string("summary");
    const auto older_name = reasoning->string("generate_summary");
    summary = summary ? summary : older_name;
    request_.summarise_reasoning = summary && *summary != "none";
    if (summary) {
      echo["summary"] = *summary;
    }
    if (const auto effort = reasoning->string("effort")) {
      echo["effort"] = *effort;
    }
    if (json::object* passed = chat_body_["reasoning"].if_object()) {
      passed->erase("summary");
      passed->erase("generate_summary");
    }
  }
  request_.echo["reasoning"] = std::move(echo);
}

void ResponsesParser::read_include() {
  const json::array* include = body_.array("include");
  take("include");
  const auto top = body_.integer("top_logprobs", {0, kLogprobsMax});
  take("top_logprobs");
  bool logprobs = top.value_or(0) > 0;
  for (std::size_t i = 0; include != nullptr && i < include->size(); ++i) {
    const json::value& wanted = (*include)[i];
    if (wanted == "reasoning.encrypted_content") {
      request_.seal_reasoning = true;
    } else if (wanted == "message.output_text.logprobs") {
      logprobs = true;
    } else {
      report_.ignore(fmt::format("include[{}]", i));
    }
  }
  if (logprobs) {
    chat_body_["logprobs"] = true;
    chat_body_["top_logprobs"] = top.value_or(0);
  }
}

void ResponsesParser::read_lengths() {
  const json::value* tokens_max = body_.find("max_output_tokens");
  take("max_output_tokens");
  paths_.add("max_completion_tokens", "max_output_tokens");
  if (tokens_max != nullptr) {
    chat_body_["max_completion_tokens"] = *tokens_max;
  }
  request_.echo["max_output_tokens"] = tokens_max != nullptr ? *tokens_max : json::value(nullptr);
  request_.store = body_.boolean("store").value_or(true);
  take("store");
  request_.echo["store"] = request_.store;
  auto metadata = body_.object("metadata");
  take("metadata");
  request_.echo["metadata"] = metadata ? body_.find("metadata")->get_object() : json::object();
  request_.echo["previous_response_id"] =
      request_.previous_response_id ? json::value(json::string(*request_.previous_response_id))
                                    : json::value(nullptr);
}

void ResponsesParser::refuse_unsupported() {
  for (const std::string_view key : kIgnored) {
    if (body_.has(key)) {
      report_.ignore(std::string(key));
    }
    take(key);
  }
  if (body_.boolean("background").value_or(false)) {
    body_.reject("background", "send the request again with stream");
  }
  take("background");
  body_.reject("conversation", "use previous_response_id");
  body_.reject("prompt", "there are no stored prompts; send instructions and input");
  if (body_.integer("n", {}).value_or(1) != 1) {
    body_.reject("n", "a response is one answer");
  }
}

// Order: what is ignored goes first, then translations may take the place of the same names.
ApiResult<ResponsesRequest> ResponsesParser::parse(const ChatDefaults& defaults,
                                                   const RequestLimits& limits) {
  refuse_unsupported();
  read_tools();
  read_conversation();
  read_tool_choice();
  read_text();
  read_reasoning();
  read_include();
  read_lengths();
  if (report_.failed()) {
    return std::unexpected(report_.error());
  }
  auto chat = parse_chat_request(chat_body_, defaults, limits);
  if (!chat) {
    return std::unexpected(with_source(std::move(chat).error()));
  }
  request_.chat = std::move(*chat);
  std::vector<std::string> ignored = report_.take_ignored();
  for (const std::string& path : request_.chat.ignored) {
    ignored.push_back(paths_.source_of(path));
  }
  request_.chat.ignored = std::move(ignored);
  for (MediaSource& media : request_.chat.media) {
    media.path = paths_.source_of(media.path);
  }
  return std::move(request_);
}

// Messages of errors begin with the path, or name it.
ApiError ResponsesParser::with_source(ApiError error) const {
  std::string source = paths_.source_of(error.param);
  if (const std::size_t at = error.message.find(error.param);
      at != std::string::npos && !error.param.empty()) {
    error.message.replace(at, error.param.size(), source);
  }
  error.param = std::move(source);
  return error;
}

}  // namespace

ApiResult<ResponsesRequest> parse_responses_request(std::string body_text,
                                                    const ChatDefaults& defaults,
                                                    const RequestLimits& limits,
                                                    const ResponseArchive& archive) {
  const auto body = parse_json_object(std::move(body_text));
  if (!body) {
    return std::unexpected(body.error());
  }
  return ResponsesParser(*body, archive).parse(defaults, limits);
}

}  // namespace sluice
