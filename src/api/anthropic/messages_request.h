// POST /v1/messages and /v1/messages/count_tokens: the request as native types.
#pragma once

#include <string>

#include "api/openai/chat_request.h"

namespace sluice {

// What holds when the request does not say.
struct MessagesDefaults {
  // Off: callers that do not ask for thinking read content[0].text.
  ThinkingDefaults thinking = {.enabled = false};
  ConversationDefaults conversation = {};
};

struct MessagesRequest {
  ChatRequest chat;            // what every dialect of conversations has
  bool omit_thinking = false;  // the reply says that there was reasoning, but not which
};

// `body` is the raw body. Errors name the field.
ApiResult<MessagesRequest> parse_messages_request(std::string body,
                                                  const MessagesDefaults& defaults,
                                                  const RequestLimits& limits);

}  // namespace sluice
