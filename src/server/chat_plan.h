// From a conversation to the sequences that answer it: the steps every dialect of conversations
// shares between its parser and its form of the reply.
#pragma once

#include <string>
#include <vector>

#include "api/chat/vision_prompt.h"
#include "api/openai/chat_request.h"
#include "server/backend.h"
#include "server/generation_plan.h"
#include "server/json_answer.h"
#include "server/media_loader.h"

namespace sluice {

struct EncodedChat {
  std::string text;                // the prompt, one placeholder for each picture
  std::vector<TokenId> token_ids;  // the same, with all placeholders
  bool reasoning_open = false;     // the answer starts inside the reasoning
  // Up to where the client asked for a reusable state; ascending.
  std::vector<std::int64_t> marked_positions = {};
  std::vector<OpenedMedia> media = {};       // not decoded yet
  std::vector<PlacedPicture> pictures = {};  // of these, in their order
};

// Renders and encodes, with as many placeholders as the pictures want. `param` names the field the
// conversation came from. Calls that an earlier answer to the same owner (cache_owner()) contained
// become the tokens they were.
ApiResult<EncodedChat> encode_chat(const Backend& backend, const HttpRequest& http,
                                   const ChatRequest& request, const std::string& param);

// How long the prompt would be, as the dialect says it. Errors: an unknown model, and those of
// encode_chat().
ApiResult<JsonAnswer> count_chat_tokens(const Backend& backend, const HttpRequest& http,
                                        ApiDialect dialect, const ChatRequest& request,
                                        const std::string& param);

// The pictures of the prompt at their places. Errors: a broken one, too many of them at once.
ApiResult<std::vector<VisionSpan>> decode_pictures(const Backend& backend, const HttpRequest& http,
                                                   const EncodedChat& encoded);

// Everything but the form of the reply; decodes the pictures. Errors: an unknown model, a prompt
// that leaves no room, more answers than this server may ever run, a broken picture.
ApiResult<GenerationPlan> plan_chat(const Backend& backend, const HttpRequest& http,
                                    ApiDialect dialect, const ChatRequest& request,
                                    const EncodedChat& encoded, const std::string& param);

}  // namespace sluice
