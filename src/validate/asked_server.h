// A server that is asked over HTTP: who it is, and one question at a time. Nothing but the
// OpenAI-compatible interface is needed; what only Sluice has is used where Sluice answers.
//
// Thread rule: one owner; ask() with a client of one's own from any thread.
#pragma once

#include <boost/json/array.hpp>
#include <cstdint>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "client/chat_client.h"
#include "client/http_client.h"
#include "validate/validation_report.h"

namespace sluice::validate {

struct Question {
  boost::json::array messages;
  boost::json::array tools = {};
  std::string salt;              // requests share what is computed only under the same one
  std::int64_t tokens_max = 16;  // of the answer
  bool to_the_end = false;       // do not stop before (Sluice and vLLM can)
};

class AskedServer {
 public:
  // Asks /version and /v1/models. Errors: invalid_argument (no URL), io (nobody answers), not_found
  // (no model).
  static Result<AskedServer> connect(const std::string& url, const std::string& api_key,
                                     const Clock& clock);

  bool is_sluice() const { return is_sluice_; }
  std::int64_t context() const { return context_; }  // tokens; 0: it does not say
  const std::vector<Fact>& facts() const { return facts_; }
  const Clock& clock() const { return clock_; }

  // A name that no request before had, on this or any earlier day.
  std::string fresh_salt();

  // Greedy, without thinking, with log-probabilities. Errors: those of the client, and a refusal
  // with its message.
  Result<ChatAnswer> ask(const Question& question) { return ask(client_, question); }
  Result<ChatAnswer> ask(HttpClient& client, const Question& question) const;
  HttpClient new_client() const { return HttpClient(url_, {.api_key = api_key_}); }

  // The text of a path; empty when it is not there.
  std::string get(const std::string& path);

 private:
  AskedServer(ServerUrl url, std::string api_key, const Clock& clock);

  ServerUrl url_;
  std::string api_key_;
  const Clock& clock_;
  HttpClient client_;
  bool is_sluice_ = false;
  std::string model_;
  std::int64_t context_ = 0;
  std::vector<Fact> facts_;
  std::string salt_base_;
  std::int64_t salts_ = 0;
};

// Everything of an answer that must not depend on the cache, as one text: equal texts are equal
// answers, log-probabilities included.
std::string essence(const ChatAnswer& reply);

// Seconds to the first part of the answer; to its end where it has none.
double first_seconds(const ChatAnswer& reply);

// "12 ms", "3.41 s".
std::string seconds_text(double seconds);

// {"role": role, "content": text}.
boost::json::object message(std::string_view role, std::string_view text);

}  // namespace sluice::validate
