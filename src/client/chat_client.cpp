#include "client/chat_client.h"

#include <fmt/format.h>

#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <boost/json/value.hpp>
#include <cstddef>
#include <optional>
#include <string_view>
#include <utility>

namespace sluice {
namespace {

namespace json = boost::json;

constexpr std::size_t kMessageBytesMax = 500;  // of an error reply's text
constexpr std::size_t kCallsMax = 1024;

// The member of that name; null when `value` is no object or has none.
const json::value* member(const json::value& value, std::string_view name) {
  const json::object* object = value.if_object();
  return object == nullptr ? nullptr : object->if_contains(name);
}

std::string_view string_of(const json::value* value) {
  const json::string* text = value == nullptr ? nullptr : value->if_string();
  return text == nullptr ? std::string_view() : std::string_view(*text);
}

std::optional<std::int64_t> integer_of(const json::value* value) {
  const std::int64_t* number = value == nullptr ? nullptr : value->if_int64();
  return number == nullptr ? std::nullopt : std::optional(*number);
}

void take_count(const json::value& from, std::string_view name, std::int64_t& count) {
  count = integer_of(member(from, name)).value_or(count);
}

// Puts the chunks of one stream together.
class ChatStream {
 public:
  ChatStream(ChatAnswer& reply, const Clock& clock)
      : reply_(reply), clock_(clock), begin_(clock.now()) {}

  double seconds() const { return seconds_between(begin_, clock_.now()); }

  Result<void> take(std::string_view data) {
    boost::system::error_code error;
    const json::value chunk = json::parse(data, error);
    if (error || !chunk.is_object()) {
      return refuse(data, "is no JSON object");
    }
    if (const json::value* failure = member(chunk, "error");
        failure != nullptr && !failure->is_null()) {
      constexpr std::int64_t kServerError = 500;
      const std::int64_t status = integer_of(member(*failure, "code")).value_or(kServerError);
      reply_.status = status >= 400 && status < 600 ? static_cast<int>(status) : 500;
      reply_.error = error_message(std::string(data));
      return {};
    }
    if (const json::value* usage = member(chunk, "usage"); usage != nullptr && usage->is_object()) {
      take_usage(*usage);
    }
    const json::value* choices = member(chunk, "choices");
    if (choices == nullptr || !choices->is_array()) {
      return refuse(data, "has no choices");
    }
    if (choices->get_array().empty()) {
      return {};
    }
    return take_choice(choices->get_array().front(), data);
  }

 private:
  static Result<void> refuse(std::string_view data, std::string_view why) {
    return fail(ErrorCode::corrupt_data, fmt::format("an event of the stream {}: {}", why,
                                                     data.substr(0, kMessageBytesMax)));
  }

  void take_usage(const json::value& usage) {
    take_count(usage, "prompt_tokens", reply_.prompt_tokens);
    take_count(usage, "completion_tokens", reply_.completion_tokens);
    if (const json::value* details = member(usage, "prompt_tokens_details")) {
      take_count(*details, "cached_tokens", reply_.cached_tokens);
    }
  }

  Result<void> take_choice(const json::value& choice, std::string_view data) {
    if (const std::string_view reason = string_of(member(choice, "finish_reason"));
        !reason.empty()) {
      reply_.finish_reason = reason;
    }
    if (const json::value* logprobs = member(choice, "logprobs")) {
      const json::value* content = member(*logprobs, "content");
      if (content != nullptr && content->is_array()) {
        const json::array& entries = content->get_array();
        reply_.logprobs.insert(reply_.logprobs.end(), entries.begin(), entries.end());
      }
    }
    const json::value* delta = member(choice, "delta");
    if (delta == nullptr || !delta->is_object()) {
      return reply_.finish_reason.empty() ? refuse(data, "has no delta") : Result<void>();
    }
    const std::string_view text = string_of(member(*delta, "content"));
    std::string_view reasoning = string_of(member(*delta, "reasoning_content"));
    if (reasoning.empty()) {
      reasoning = string_of(member(*delta, "reasoning"));
    }
    reply_.text += text;
    reply_.reasoning += reasoning;
    bool has_calls = false;
    if (const json::value* calls = member(*delta, "tool_calls");
        calls != nullptr && calls->is_array()) {
      for (const json::value& call : calls->get_array()) {
        has_calls = true;
        if (!take_call(call)) {
          return refuse(data, "has a tool call that is none");
        }
      }
    }
    if (!text.empty() || !reasoning.empty() || has_calls) {
      note_chunk();
    }
    return {};
  }

  // A part of a call: name and id come once, the arguments in pieces. False: it is none.
  bool take_call(const json::value& part) {
    if (!part.is_object()) {
      return false;
    }
    const std::int64_t last = static_cast<std::int64_t>(reply_.tool_calls.size()) - 1;
    const std::int64_t index = integer_of(member(part, "index")).value_or(last < 0 ? 0 : last);
    if (index < 0 || index > last + 1 || index >= static_cast<std::int64_t>(kCallsMax)) {
      return false;
    }
    if (index > last) {
      reply_.tool_calls.emplace_back(
          json::object{{"id", ""},
                       {"type", "function"},
                       {"function", json::object{{"name", ""}, {"arguments", ""}}}});
    }
    json::object& call = reply_.tool_calls[static_cast<std::size_t>(index)].as_object();
    json::object& function = call["function"].as_object();
    const json::value* part_function = member(part, "function");
    append(call["id"], member(part, "id"));
    if (part_function != nullptr) {
      append(function["name"], member(*part_function, "name"));
      append(function["arguments"], member(*part_function, "arguments"));
    }
    return true;
  }

  static void append(json::value& to, const json::value* part) {
    to.as_string().append(string_of(part));
  }

  void note_chunk() {
    const double now = seconds();
    if (reply_.chunk_seconds.empty()) {
      reply_.first_token_seconds = now;
    }
    reply_.chunk_seconds.push_back(now);
  }

  ChatAnswer& reply_;
  const Clock& clock_;
  Clock::TimePoint begin_;
};

}  // namespace

Result<ChatAnswer> ask_chat(HttpClient& client, json::object body, const Clock& clock) {
  body["stream"] = true;
  body["stream_options"] = json::object{{"include_usage", true}};
  const std::string sent = json::serialize(body);
  ChatAnswer reply;
  ChatStream stream(reply, clock);
  Result<void> taken;
  const HttpClient::Reply answer =
      SLUICE_TRY(client.post_stream("/v1/chat/completions", sent, [&](std::string_view data) {
        taken = stream.take(data);
        return taken.has_value();
      }));
  SLUICE_TRY(std::move(taken));
  reply.seconds = stream.seconds();
  if (answer.status != 200) {
    reply.status = answer.status;
    reply.error = error_message(answer.body);
  } else if (reply.status == 200 && reply.finish_reason.empty()) {
    return fail(ErrorCode::io, "the stream ended without a finish_reason");
  }
  return reply;
}

std::string error_message(const std::string& body) {
  boost::system::error_code error;
  const json::value value = json::parse(body, error);
  if (!error) {
    const json::value* inner = member(value, "error");
    for (const json::value* at : {inner == nullptr ? nullptr : member(*inner, "message"), inner,
                                  member(value, "message"), member(value, "detail")}) {
      if (const std::string_view text = string_of(at); !text.empty()) {
        return std::string(text.substr(0, kMessageBytesMax));
      }
    }
  }
  return body.substr(0, kMessageBytesMax);
}

}  // namespace sluice
