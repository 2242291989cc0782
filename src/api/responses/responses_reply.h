// Replies of POST /v1/responses: the response object, and the events that build it up.
//
//   response.created, response.in_progress
//   for each item: output_item.added, its parts and deltas, output_item.done
//   response.completed | response.incomplete | response.failed, with the whole object
//   (the last event of a cancelled response is response.incomplete, its status "cancelled")
//
// A whole reply is what the last event of its stream would say: both come from the same calls.
#pragma once

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "api/reply_format.h"
#include "api/responses/custom_input.h"
#include "api/responses/responses_tools.h"

namespace sluice {

struct ResponseReplyOptions {
  boost::json::object echo = {};  // of ResponsesRequest
  double temperature = 1.0;       // as they apply
  double top_p = 1.0;
  ToolTargets tool_targets = {};
  bool include_reasoning = true;
  bool summarise_reasoning = false;
  bool seal_reasoning = false;
  bool logprobs = false;
  std::function<std::int64_t()> now;  // Unix seconds, for completed_at
  // Called with the final object, whatever its status, before the client can see it.
  std::function<void(const boost::json::object&)> on_final = {};
};

class ResponseReply final : public ReplyFormat {
 public:
  ResponseReply(ReplyHead head, ResponseReplyOptions options, TokenBytes token_bytes);

  std::vector<SseEvent> begin(const AnswerUsage& usage) override;
  std::vector<SseEvent> delta(std::size_t choice, const AnswerDelta& delta,
                              std::span<const TokenId> token_ids,
                              const AnswerUsage& usage) override;
  std::vector<SseEvent> end(std::size_t choice, const AnswerEnd& end,
                            std::span<const TokenId> token_ids, const AnswerUsage& usage) override;
  std::vector<SseEvent> finish(const AnswerUsage& usage) override;
  std::vector<SseEvent> fail(const std::string& error_json) override;
  std::string whole(std::span<const ChoiceAnswer> choices, const AnswerUsage& usage) override;

  // The object of a response that runs, without what of it is there already.
  std::string in_progress_json() const;

 private:
  enum class ItemKind { reasoning, message, function_call, custom_call };

  // The output item that grows; at most one.
  struct OpenItem {
    ItemKind kind = ItemKind::message;
    std::string id = {};
    std::string text = {};  // reasoning, content, arguments or input so far
    boost::json::array logprobs = {};
    std::string call_id = {};
    ToolTarget target = {};
    CustomInput input = {};
    std::string arguments = {};  // of a custom call, which tells only its input
  };

  using Events = std::vector<SseEvent>;

  void open_item(ItemKind kind, Events& events);
  void open_call(const CallHead& head, Events& events);
  void start_item(OpenItem item, Events& events);
  void open_part(Events& events);
  void add_text(std::string_view text, std::span<const TokenEvent> tokens, Events& events);
  void close_item(bool cut, Events& events);
  void close_part(Events& events);

  bool open_call_is_cut() const;
  boost::json::object item_json(const char* status) const;
  boost::json::object part_json(bool with_text) const;
  boost::json::object event_of_item(std::string_view type) const;
  boost::json::object response_json(const char* status) const;
  boost::json::object ended_response(const AnswerUsage& usage);
  void push(boost::json::object event, Events& events);
  Events terminal(std::string_view type, boost::json::object response);

  ReplyHead head_;
  ResponseReplyOptions options_;
  TokenBytes token_bytes_;
  std::int64_t sequence_number_ = 0;
  boost::json::array output_;  // finished items
  std::optional<OpenItem> open_;
  bool cut_ = false;        // by a limit
  bool cancelled_ = false;  // by another request
};

}  // namespace sluice
