// POST /v1/responses: the request as native types.
//
// It is translated into the chat request that means the same, so that both dialects have the same
// fields, tools, formats and limits; errors and ignored fields carry the paths the client sent.
#pragma once

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <cstddef>
#include <optional>
#include <string>

#include "api/openai/chat_request.h"
#include "api/responses/response_archive.h"
#include "api/responses/responses_tools.h"

namespace sluice {

inline constexpr std::size_t kResponseIdBytesMax = 256;  // `previous_response_id`

struct ResponsesRequest {
  ChatRequest chat;
  bool store = true;
  std::optional<std::string> previous_response_id;
  boost::json::array input_items;  // of this request alone, references resolved
  ToolTargets tool_targets;
  bool summarise_reasoning = false;  // reasoning is told as its summary
  bool seal_reasoning = false;       // reasoning items carry encrypted_content
  // What the response object repeats: "instructions", "metadata", "tools", ... All keys.
  boost::json::object echo;
};

// `body` is the raw body. Errors name the field.
ApiResult<ResponsesRequest> parse_responses_request(std::string body, const ChatDefaults& defaults,
                                                    const RequestLimits& limits,
                                                    const ResponseArchive& archive);

}  // namespace sluice
