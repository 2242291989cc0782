// Replies of POST /v1/chat/completions: chat.completion and chat.completion.chunk objects.
#pragma once

#include <boost/json/object.hpp>

#include "api/openai/chat_request.h"
#include "api/reply_format.h"

namespace sluice {

struct ChatReplyOptions {
  ReasoningFormat reasoning_format = ReasoningFormat::both;
  bool include_reasoning = true;
  bool include_usage = false;
  bool continuous_usage = false;
  bool logprobs = false;
  bool return_token_ids = false;
  bool service_tier = false;  // the reply says which: there is one
  std::size_t choices = 1;
  std::vector<TokenId> prompt_token_ids = {};  // when return_token_ids
};

class ChatReply final : public ReplyFormat {
 public:
  ChatReply(ReplyHead head, ChatReplyOptions options, TokenBytes token_bytes);

  std::vector<SseEvent> begin(const AnswerUsage& usage) override;
  std::vector<SseEvent> delta(std::size_t choice, const AnswerDelta& delta,
                              std::span<const TokenId> token_ids,
                              const AnswerUsage& usage) override;
  std::vector<SseEvent> end(std::size_t choice, const AnswerEnd& end,
                            std::span<const TokenId> token_ids, const AnswerUsage& usage) override;
  std::vector<SseEvent> finish(const AnswerUsage& usage) override;
  std::vector<SseEvent> fail(const std::string& error_json) override;
  std::string whole(std::span<const ChoiceAnswer> choices, const AnswerUsage& usage) override;

 private:
  boost::json::object delta_object(std::size_t choice, const AnswerDelta& delta);
  boost::json::object call_delta(std::size_t choice, const AnswerDelta& delta);
  boost::json::object chunk(boost::json::array choices, const AnswerUsage& usage) const;
  boost::json::object chunk_choice(std::size_t choice, boost::json::object delta,
                                   std::span<const TokenId> token_ids) const;
  boost::json::object head_json(boost::json::string_view object) const;
  boost::json::object message(const ChoiceAnswer& answer) const;
  boost::json::value logprobs(std::span<const TokenEvent> content,
                              std::span<const TokenEvent> reasoning) const;

  ReplyHead head_;
  ChatReplyOptions options_;
  TokenBytes token_bytes_;
  std::vector<bool> inline_reasoning_open_;  // per choice, for inline_tags
  std::vector<std::size_t> call_counts_;     // per choice: calls opened so far
};

}  // namespace sluice
