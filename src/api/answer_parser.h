// One generated sequence, token by token, on its way to a reply: text is split into reasoning and
// content, stop texts cut the content, and every token stays with the text it made.
//
//   token text -> [stop texts, everywhere] -> ReasoningParser -> [stop texts, content] -> deltas
//
// All dialects use this class, for streams and for whole replies, so both say the same.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/reasoning_parser.h"
#include "api/stop_matcher.h"
#include "request/request.h"

namespace sluice {

struct AnswerRules {
  bool starts_inside_reasoning = false;
  std::vector<std::string> stop = {};
  bool stop_everywhere = false;  // else in content only
  bool keep_stop_text = false;
};

// What opens a tool call.
struct CallHead {
  std::string id;
  std::string name;
};

// New text of one part. tokens: those whose text begins in it (tags, calls and cut text have none).
// A call comes in several deltas: one with its head and no text, then pieces of its arguments,
// which together are the text of a JSON object. One call at a time.
struct AnswerDelta {
  AnswerPart part = AnswerPart::content;
  std::string text;
  std::vector<TokenEvent> tokens = {};
  std::optional<CallHead> call = {};
};

class AnswerParser {
 public:
  explicit AnswerParser(AnswerRules rules);

  // `text` is what became complete with this token; it may be empty. Ignored after a stop text.
  std::vector<AnswerDelta> append(const TokenEvent& token, std::string_view text);

  // `tail` is text that became complete because the sequence ended.
  std::vector<AnswerDelta> finish(std::string_view tail);

  // The stop text that ended the answer.
  const std::optional<std::string>& stop_text() const;

  std::int64_t token_count() const { return token_count_; }

  // Tokens up to and including the one that closed the reasoning.
  std::int64_t reasoning_token_count() const { return reasoning_token_count_; }

 private:
  struct PlacedToken {
    TokenEvent event;
    std::size_t begin = 0;  // of its text; in the input, later in the content
    std::size_t end = 0;    // at least begin + 1: a token without own text goes with the next
  };

  void take_text(std::string_view text, bool at_end, std::vector<AnswerDelta>& deltas);
  void take_segment(const AnswerSegment& segment, std::vector<AnswerDelta>& deltas);
  void let_out_content(std::string text, std::vector<AnswerDelta>& deltas);

  StopMatcher input_stops_;
  StopMatcher content_stops_;
  ReasoningParser reasoning_;
  std::int64_t token_count_ = 0;
  std::int64_t reasoning_token_count_ = 0;
  std::size_t input_size_ = 0;
  std::size_t content_size_ = 0;      // given to content_stops_
  std::size_t content_out_size_ = 0;  // let out by it
  std::deque<PlacedToken> input_tokens_;
  std::deque<PlacedToken> content_tokens_;
};

}  // namespace sluice
