// Bodies of requests in every dialect: whatever a client sends, it is read or refused with an error
// of the client's that can be sent back.
//
// Input: one byte that chooses the parser, then the body.
#include <array>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "api/anthropic/messages_request.h"
#include "api/cache_admin.h"
#include "api/fields/json_text.h"
#include "api/openai/chat_request.h"
#include "api/openai/completions.h"
#include "api/openai/text_requests.h"
#include "api/responses/responses_request.h"

namespace {

// Without grammars: those of the Rust crate have limits and tests of their own.
constexpr sluice::RequestLimits kLimits{.vocab_size = 1000};

// A stored conversation of one question, and one of its items.
class Archive final : public sluice::ResponseArchive {
 public:
  std::optional<boost::json::array> conversation(std::string_view id) const override {
    return id == "resp_1" ? std::optional(boost::json::array{item()}) : std::nullopt;
  }
  std::optional<boost::json::object> item(std::string_view id) const override {
    return id == "msg_1" ? std::optional(item()) : std::nullopt;
  }

 private:
  static boost::json::object item() {
    return {{"type", "message"}, {"role", "user"}, {"id", "msg_1"}, {"content", "Hi"}};
  }
};

template <typename T>
void check(const sluice::ApiResult<T>& parsed) {
  if (parsed) {
    return;
  }
  const sluice::ApiError& error = parsed.error();
  if (error.kind == sluice::ApiErrorKind::internal || error.message.empty()) {
    std::abort();
  }
}

template <typename T>
void check_ignored(const sluice::ApiResult<T>& parsed, std::size_t size) {
  check(parsed);
  if (parsed && parsed->ignored.size() > size) {
    std::abort();
  }
}

void parse(std::uint8_t parser, std::string body) {
  const std::size_t size = body.size();
  switch (parser % 8) {
    case 0:
      check_ignored(sluice::parse_chat_request(std::move(body), {}, kLimits), size);
      return;
    case 1:
      check_ignored(sluice::parse_completion_request(std::move(body), kLimits), size);
      return;
    case 2:
      check(sluice::parse_responses_request(std::move(body), {}, kLimits, Archive()));
      return;
    case 3:
      check(sluice::parse_messages_request(std::move(body), {}, kLimits));
      return;
    case 4:
      check_ignored(sluice::parse_tokenize_request(std::move(body), {}, kLimits), size);
      return;
    case 5:
      check(sluice::parse_template_request(std::move(body), {}, kLimits));
      return;
    case 6:
      check(sluice::parse_detokenize_request(std::move(body), kLimits));
      return;
    default:
      check(sluice::parse_flush_request(std::move(body)));
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 1) {
    return 0;
  }
  parse(data[0], std::string(reinterpret_cast<const char*>(data) + 1, size - 1));
  return 0;
}
