// One answer of an OpenAI-compatible server: /v1/chat/completions as an event stream, put together,
// with the times at which its parts came. Asks nothing that only one server has.
#pragma once

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <cstdint>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "client/http_client.h"

namespace sluice {

struct ChatAnswer {
  int status = 200;
  std::string error;  // the server's message, of a refusal or of an error inside the stream

  std::string text;
  std::string reasoning;  // reasoning_content, or reasoning
  std::string finish_reason;
  boost::json::array tool_calls;  // as a reply that is no stream has them
  boost::json::array logprobs;    // the entries of logprobs.content, as sent

  // Of usage; -1: the server did not say.
  std::int64_t prompt_tokens = -1;
  std::int64_t completion_tokens = -1;
  std::int64_t cached_tokens = -1;

  // Since the request was sent. A chunk counts when it has text, reasoning or a part of a call.
  double first_token_seconds = 0;  // 0: no chunk came
  double seconds = 0;              // to the end of the reply
  std::vector<double> chunk_seconds;
};

// Sends `body` with stream and stream_options.include_usage set, and reads the first choice.
// A refusal (4xx, 5xx) is a ChatAnswer with that status; an error inside the stream one with the
// status it names (500 if none) and what had come before. Errors: those of HttpClient, corrupt_data
// for what is no chat.completion.chunk, io for a stream that ends without a finish_reason.
Result<ChatAnswer> ask_chat(HttpClient& client, boost::json::object body, const Clock& clock);

// The message of an error reply: error.message, error, message or detail, else the body's
// beginning.
std::string error_message(const std::string& body);

}  // namespace sluice
