// How one dialect writes answers: the seam between the run of a request (server/) and the JSON of
// each API (api/). A dialect is one pair of files that implements this for its replies.
//
// Choices are independent answers to one request; a completion of several prompts has one or more
// for each. The concatenated deltas of a stream say exactly what the whole reply says.
// Thread rule: one owner, one request.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "api/answer/answer_parser.h"
#include "api/api_error.h"
#include "request/prompt_reuse.h"
#include "request/request.h"

namespace sluice {

// One event of a server-sent event stream; data is one line.
struct SseEvent {
  std::string name;  // empty: no event line
  std::string data;
};

// What every part of a reply repeats.
struct ReplyHead {
  std::string id;
  std::int64_t created = 0;  // Unix seconds
  std::string model;         // as the request named it
  std::string fingerprint;
};

struct AnswerUsage {
  std::int64_t prompt_tokens = 0;
  std::int64_t image_tokens = 0;  // of the prompt: placeholders of pictures and videos
  std::int64_t cached_tokens = 0;
  std::int64_t completion_tokens = 0;
  std::int64_t reasoning_tokens = 0;
};

struct AnswerEnd {
  FinishReason reason = FinishReason::stop;  // stop, length, or cancelled by another request
  std::optional<std::string> stop_text = {};
  std::optional<TokenId> stop_token_id = {};  // of the request, not the model's own
  std::optional<Timings> timings = {};        // when asked for
  std::optional<PromptReuse> reuse = {};      // the same
  bool has_complete_call = false;
};

// A whole answer: its parts in the order in which they came, neighbours of one kind joined; a call
// is one part, with its head. token_ids: all generated, when asked for.
struct ChoiceAnswer {
  std::vector<AnswerDelta> parts;
  std::vector<TokenId> token_ids;
  AnswerEnd end;

  void add(AnswerDelta delta);

  // All text of one kind; of calls: their arguments.
  std::string text_of(AnswerPart part) const;
  std::vector<TokenEvent> tokens_of(AnswerPart part) const;
};

// The exact bytes of a token.
using TokenBytes = std::function<std::string_view(TokenId)>;

class ReplyFormat {
 public:
  ReplyFormat() = default;
  ReplyFormat(const ReplyFormat&) = delete;
  ReplyFormat& operator=(const ReplyFormat&) = delete;
  virtual ~ReplyFormat() = default;

  // Whose shape errors have, before the reply begins and inside a stream.
  virtual ApiDialect dialect() const { return ApiDialect::openai; }

  // Whether a stream begins only once the engine has taken the request up, because its first event
  // says how much of the prompt was already computed. Until then there are only pings.
  virtual bool begins_when_admitted() const { return false; }

  // What a silent stream says now and then; none: a comment, which is no event.
  virtual std::optional<SseEvent> ping() const { return std::nullopt; }

  // A stream. begin() before the first token; then deltas and one end for each choice; then
  // finish(), or fail() with an error object. `usage` is the state so far. token_ids: those
  // generated since the last event of this choice, when asked for.
  virtual std::vector<SseEvent> begin(const AnswerUsage& usage) = 0;
  virtual std::vector<SseEvent> delta(std::size_t choice, const AnswerDelta& delta,
                                      std::span<const TokenId> token_ids,
                                      const AnswerUsage& usage) = 0;
  virtual std::vector<SseEvent> end(std::size_t choice, const AnswerEnd& end,
                                    std::span<const TokenId> token_ids,
                                    const AnswerUsage& usage) = 0;
  virtual std::vector<SseEvent> finish(const AnswerUsage& usage) = 0;
  virtual std::vector<SseEvent> fail(const std::string& error_json) = 0;

  // A reply in one piece.
  virtual std::string whole(std::span<const ChoiceAnswer> choices, const AnswerUsage& usage) = 0;
};

}  // namespace sluice
