// Replies of POST /v1/messages: a message of content blocks, whole or as a stream of events.
//
//   message_start (content_block_start content_block_delta* content_block_stop)* message_delta
//   message_stop
//
// One block is open at a time; a part that goes on later opens a new one. A stream accumulates to
// exactly the whole message.
#pragma once

#include <boost/json/object.hpp>
#include <optional>
#include <string>
#include <vector>

#include "api/reply_format.h"

namespace sluice {

struct MessagesReplyOptions {
  bool omit_thinking = false;      // thinking blocks are there, without text
  bool length_is_context = false;  // the answer's limit is the context, not max_tokens
  // Prompt tokens up to the last state the client asked for; those not reused count as created.
  std::int64_t marked_tokens = 0;
};

class MessagesReply final : public ReplyFormat {
 public:
  MessagesReply(ReplyHead head, MessagesReplyOptions options);

  ApiDialect dialect() const override { return ApiDialect::anthropic; }
  bool begins_when_admitted() const override { return true; }
  std::optional<SseEvent> ping() const override;

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
  void open_block(AnswerPart part, boost::json::object block, std::vector<SseEvent>& events);
  void close_block(std::vector<SseEvent>& events);
  boost::json::object block_event(const char* type) const;
  boost::json::object message(boost::json::array content, const AnswerUsage& usage) const;
  boost::json::object stop_fields(const AnswerEnd& end) const;
  boost::json::object usage(const AnswerUsage& usage) const;
  boost::json::array content_blocks(const ChoiceAnswer& answer) const;
  boost::json::object thinking_block(const std::string& text) const;

  ReplyHead head_;
  MessagesReplyOptions options_;
  std::optional<AnswerPart> open_part_;
  std::int64_t block_index_ = 0;  // of the open block, or of the next one
};

}  // namespace sluice
