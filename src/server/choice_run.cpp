#include "server/choice_run.h"

#include <algorithm>
#include <utility>

namespace sluice {

ChoiceRun::ChoiceRun(const Tokenizer& tokenizer, const GenerationPlan& plan,
                     PlannedSequence& sequence, std::shared_ptr<GenerationStream> stream)
    : plan_(&plan),
      stream_(std::move(stream)),
      decoder_(tokenizer, plan.skip_special_tokens),
      parser_(std::move(sequence.rules)),
      scored_echo_(std::move(sequence.scored_echo)),
      counts_prompt_(sequence.counts_prompt) {}

void ChoiceRun::take_cached_tokens(std::int64_t cached_tokens, AnswerUsage& usage) {
  if (counts_prompt_) {
    usage.cached_tokens += cached_tokens - std::exchange(cached_tokens_, cached_tokens);
  }
}

std::vector<AnswerDelta> ChoiceRun::take_scores(PromptScored scored) {
  return {{.part = AnswerPart::content,
           .text = std::move(scored_echo_),
           .tokens = std::move(scored.tokens)}};
}

std::vector<AnswerDelta> ChoiceRun::take_token(const TokenEvent& token, AnswerUsage& usage) {
  if (parser_.has_ended()) {
    return {};  // generated before the engine heard that it should stop
  }
  const std::int64_t reasoning_before = parser_.reasoning_token_count();
  std::vector<AnswerDelta> deltas = parser_.append(token, decoder_.append(token.token_id));
  usage.completion_tokens += 1;
  usage.reasoning_tokens += parser_.reasoning_token_count() - reasoning_before;
  if (plan_->return_token_ids) {
    unsent_token_ids_.push_back(token.token_id);
    answer_.token_ids.push_back(token.token_id);
  }
  report_calls();  // before the client can send it back
  if (parser_.has_ended()) {
    stream_->cancel();
  }
  return deltas;
}

std::vector<AnswerDelta> ChoiceRun::take_tail(const GenerationFinished& finished,
                                              AnswerUsage& usage) {
  const bool ended_here = parser_.has_ended();
  cut_ = finished.reason != FinishReason::stop && !ended_here;
  const std::int64_t reasoning_before = parser_.reasoning_token_count();
  std::vector<AnswerDelta> deltas = parser_.finish(decoder_.finish(), cut_);
  usage.reasoning_tokens += parser_.reasoning_token_count() - reasoning_before;
  report_calls();
  if (!ended_here) {
    // A stop token counts where the engine counts it, though it is no text and no event.
    usage.completion_tokens +=
        std::max<std::int64_t>(finished.usage.completion_tokens - parser_.token_count(), 0);
  }
  take_cached_tokens(finished.usage.cached_tokens, usage);
  reuse_ = finished.reuse;
  cut_ = cut_ && !parser_.has_ended();
  return deltas;
}

AnswerEnd ChoiceRun::end_of(const GenerationFinished& finished) const {
  AnswerEnd end;
  end.reason = cut_ ? finished.reason : FinishReason::stop;
  end.has_complete_call = parser_.complete_call_count() > 0;
  end.stop_text = parser_.stop_text();
  const auto& reported = plan_->reported_stop_ids;
  if (!end.stop_text && finished.stop_token_id &&
      std::ranges::find(reported, *finished.stop_token_id) != reported.end()) {
    end.stop_token_id = finished.stop_token_id;
  }
  if (plan_->timings) {
    end.timings = finished.timings;
    end.reuse = reuse_;
  }
  return end;
}

ToolCallCounts ChoiceRun::call_counts() const {
  const auto count = [](std::size_t size) { return static_cast<std::int64_t>(size); };
  const std::size_t complete = parser_.complete_call_count();
  return {.ok = count(complete - parser_.repaired_call_count()),
          .repaired = count(parser_.repaired_call_count()),
          .literal = count(parser_.literal_call_count()),
          .truncated = count(parser_.call_count() - complete)};
}

void ChoiceRun::report_calls() {
  for (const FinishedCall& call : parser_.take_finished_calls()) {
    if (plan_->on_call) {
      plan_->on_call(call);
    }
  }
}

}  // namespace sluice
