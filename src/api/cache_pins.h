// The JSON of pinned prefixes: POST and GET /v1/cache/pins, GET and DELETE /v1/cache/pins/{id}.
#pragma once

#include <boost/json/object.hpp>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "api/openai/chat_request.h"

namespace sluice {

inline constexpr std::size_t kPinNameBytesMax = 128;

struct CachePinRequest {
  // A text, its tokens, or conversations: then the prefix is what their prompts have in common.
  std::variant<std::string, std::vector<TokenId>, std::vector<ChatRequest>> prefix;
  std::string source;         // the field it came from
  bool parse_special = true;  // control tokens spelled in a text are tokens
  std::string cache_salt;
  std::string name;
  std::optional<double> seconds;  // that the pin lasts
  std::vector<std::string> ignored;
};

// Exactly one of "messages", "system" (both with "tools" and whatever else of a chat request
// changes its prompt), "prompt" and "token_ids". A conversation that ends with a message of a user
// or a tool is pinned up to there; after any other message, and after "system", up to where
// conversations that go on with a user's message begin to differ.
ApiResult<CachePinRequest> parse_cache_pin_request(std::string body, const ChatDefaults& defaults,
                                                   const RequestLimits& limits);

// Times in Unix seconds.
struct PinReport {
  std::string id;
  std::string name;
  std::int64_t tokens = 0;
  std::size_t bytes = 0;
  std::int64_t hits = 0;
  std::optional<std::int64_t> last_used = std::nullopt;
  std::optional<std::int64_t> expires_at = std::nullopt;
};

boost::json::object pin_object(const PinReport& pin);
std::string pin_json(const PinReport& pin);
std::string pin_list_json(std::span<const PinReport> pins);
std::string deleted_pin_json(const std::string& id);

}  // namespace sluice
