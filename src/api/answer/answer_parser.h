// One generated sequence, token by token, on its way to a reply: text is split into reasoning,
// content and tool calls, stop texts cut the content, and every token stays with the text it made.
//
//   token text -> [stop texts, everywhere] -> AnswerSplitter -> [stop texts, content] -> deltas
//
// Where an answer may have calls, white space of the content before a call and around calls is
// left out. All dialects use this class, for streams and for whole replies, so both say the same.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "api/answer/answer_splitter.h"
#include "api/answer/stop_matcher.h"
#include "request/request.h"

namespace sluice {

struct AnswerRules {
  bool starts_inside_reasoning = false;
  std::vector<std::string> stop = {};
  bool stop_everywhere = false;  // else in content only
  bool keep_stop_text = false;
  std::shared_ptr<const ToolSet> tools = {};      // null: the answer cannot have calls
  std::function<std::string()> new_call_id = {};  // set when there are tools
  std::optional<TokenId> call_token = {};         // the model's own <tool_call>
  bool one_call = false;                          // the answer ends after the first call
  // Tokens without text at the end are told too, in a delta without text; not behind a call.
  bool all_tokens = false;
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

  // Appends what came next, if it goes on with this part: then `more` is used up.
  bool take(AnswerDelta& more);
};

// A call that was closed, and what the model wrote for it.
struct FinishedCall {
  CallHead head;
  std::string arguments;
  // From its own <tool_call> to its own </tool_call>; empty when other tokens had a part in it.
  std::vector<TokenId> token_ids;
  bool repaired = false;
};

class AnswerParser {
 public:
  explicit AnswerParser(AnswerRules rules);

  // `text` is what became complete with this token; it may be empty. Ignored once has_ended().
  std::vector<AnswerDelta> append(const TokenEvent& token, std::string_view text);

  // `tail` is text that became complete because the sequence ended. cut: by a limit, not by the
  // model; a call that is open then stays incomplete.
  std::vector<AnswerDelta> finish(std::string_view tail, bool cut);

  // A stop text came, or the only call that was wanted: nothing more comes out.
  bool has_ended() const { return stop_text().has_value() || has_only_call(); }

  // The stop text that ended the answer.
  const std::optional<std::string>& stop_text() const;

  std::size_t call_count() const { return call_count_; }

  // Those that were closed: at most the last one is not.
  std::size_t complete_call_count() const { return complete_call_count_; }

  // Those of them that were put right.
  std::size_t repaired_call_count() const { return repaired_call_count_; }

  // Tags of calls that turned out to be text.
  std::size_t literal_call_count() const { return splitter_.literal_call_count(); }

  // Those that were closed since the last time.
  std::vector<FinishedCall> take_finished_calls() { return std::exchange(finished_calls_, {}); }

  std::int64_t token_count() const { return token_count_; }

  // Tokens up to and including the one that closed the reasoning. One whose text may still be held
  // back (it may belong to a tag or a stop text) is not counted yet; after the end all are.
  std::int64_t reasoning_token_count() const { return reasoning_token_count_; }

 private:
  struct PlacedToken {
    TokenEvent event;
    std::size_t begin = 0;  // of its text; in the input, later in the content
    std::size_t end = 0;    // at least begin + 1: a token without own text goes with the next
  };

  bool has_only_call() const { return rules_.one_call && complete_call_count_ > 0; }
  void count_reasoning(bool at_end);
  void take_segments(const std::vector<AnswerSegment>& segments, std::vector<AnswerDelta>& deltas);
  void take_text_segment(const AnswerSegment& segment, std::vector<AnswerDelta>& deltas);
  void take_call_segment(const AnswerSegment& segment, std::vector<AnswerDelta>& deltas);
  void let_out_content(std::string text, std::vector<AnswerDelta>& deltas);
  void let_out_space(std::vector<AnswerDelta>& deltas);
  void drop_space();
  std::vector<TokenEvent> take_content_tokens();
  std::vector<TokenId> tokens_between(std::size_t begin, std::size_t end) const;

  AnswerRules rules_;
  StopMatcher input_stops_;    // tags and reasoning too
  StopMatcher content_stops_;  // always: a dropped tag may join a stop text that the input has not
  AnswerSplitter splitter_;
  std::int64_t token_count_ = 0;
  std::int64_t reasoning_token_count_ = 0;
  std::deque<std::size_t> maybe_reasoning_;  // where tokens begin that are not counted yet
  std::size_t input_size_ = 0;
  std::size_t content_size_ = 0;      // given to content_stops_
  std::size_t content_out_size_ = 0;  // let out by it, and then let out or left out here
  std::string space_;                 // at the end of the content, when a call may follow
  bool after_call_ = false;           // no content since the last call
  bool has_content_ = false;
  std::size_t call_count_ = 0;
  std::size_t complete_call_count_ = 0;
  std::size_t repaired_call_count_ = 0;
  FinishedCall call_;  // the open one
  std::vector<FinishedCall> finished_calls_;
  std::deque<PlacedToken> input_tokens_;
  std::deque<PlacedToken> content_tokens_;
};

}  // namespace sluice
