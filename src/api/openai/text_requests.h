// POST /tokenize, /detokenize, /apply-template: the requests as native types. Nothing is generated.
#pragma once

#include <string>
#include <variant>
#include <vector>

#include "api/openai/chat_request.h"

namespace sluice {

struct TokenizeRequest {
  std::variant<std::string, ChatRequest> input;  // a text, or a conversation to be rendered
  bool parse_special = true;                     // control tokens spelled in a text are tokens
  bool with_pieces = false;                      // tokens as {"id","piece"}
  bool return_token_strs = false;
  std::vector<std::string> ignored = {};
};

// {"prompt" or "content"} or {"messages", ...} as chat completions have them.
ApiResult<TokenizeRequest> parse_tokenize_request(std::string body, const ChatDefaults& defaults,
                                                  const RequestLimits& limits);

struct DetokenizeRequest {
  std::vector<TokenId> token_ids;
  std::vector<std::string> ignored = {};
};

// {"tokens": [...]}
ApiResult<DetokenizeRequest> parse_detokenize_request(std::string body,
                                                      const RequestLimits& limits);

struct TemplateRequest {
  ChatRequest chat;
  bool return_tokens = false;
};

ApiResult<TemplateRequest> parse_template_request(std::string body, const ChatDefaults& defaults,
                                                  const RequestLimits& limits);

}  // namespace sluice
