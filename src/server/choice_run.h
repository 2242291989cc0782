// One sequence of a request, from the events of the engine to the parts of its answer: decodes the
// tokens, parses their text, counts. Knows no dialect and sends nothing.
// Thread rule: one owner.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "api/answer/answer_parser.h"
#include "api/reply_format.h"
#include "engine/engine.h"
#include "server/generation_plan.h"
#include "server/server_metrics.h"
#include "text/incremental_decoder.h"

namespace sluice {

class ChoiceRun {
 public:
  // Takes the rules out of `sequence`. tokenizer and plan must outlive this.
  ChoiceRun(const Tokenizer& tokenizer, const GenerationPlan& plan, PlannedSequence& sequence,
            std::shared_ptr<GenerationStream> stream);

  // The next event if one is ready. Not after stop().
  std::optional<GenerationEvent> try_next() { return stream_->try_next(); }

  // Each adds to `usage` what the event changed, and returns the new text.
  void take_cached_tokens(std::int64_t cached_tokens, AnswerUsage& usage);
  std::vector<AnswerDelta> take_scores(PromptScored scored);
  std::vector<AnswerDelta> take_token(const TokenEvent& token, AnswerUsage& usage);
  std::vector<AnswerDelta> take_tail(const GenerationFinished& finished, AnswerUsage& usage);

  // How the answer ended; after take_tail().
  AnswerEnd end_of(const GenerationFinished& finished) const;

  // A stop text or the only call came: why the engine stopped does not count.
  bool ended_by_parser() const { return parser_.has_ended(); }

  // Nothing more is wanted; what still runs is cancelled.
  void stop() { stream_.reset(); }
  bool ended() const { return stream_ == nullptr; }

  // What the whole reply will say; filled by the owner.
  ChoiceAnswer& answer() { return answer_; }

  // For the next event of a stream.
  std::vector<TokenId> take_unsent_token_ids() { return std::exchange(unsent_token_ids_, {}); }

  ToolCallCounts call_counts() const;
  bool counts_prompt() const { return counts_prompt_; }

  // As far as is known without the engine's own word.
  Usage usage() const {
    return {.cached_tokens = cached_tokens_, .completion_tokens = parser_.token_count()};
  }
  const std::optional<PromptReuse>& reuse() const { return reuse_; }

 private:
  void report_calls();

  const GenerationPlan* plan_;
  std::shared_ptr<GenerationStream> stream_;
  IncrementalDecoder decoder_;
  AnswerParser parser_;
  std::string scored_echo_;
  bool counts_prompt_;
  bool cut_ = false;                // by a limit
  std::int64_t cached_tokens_ = 0;  // of its prompt, as far as is known
  std::vector<TokenId> unsent_token_ids_;
  std::optional<PromptReuse> reuse_;
  ChoiceAnswer answer_;
};

}  // namespace sluice
