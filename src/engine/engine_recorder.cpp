#include "engine/engine_recorder.h"

#include <algorithm>
#include <utility>

namespace sluice {

void EngineRecorder::looked_up(const Sequence& sequence) {
  if (!sequence.counted) {
    return;
  }
  const PromptReuse& reuse = *sequence.reuse;
  metrics_.wanted_tokens += sequence.prompt_tokens - 1;
  metrics_.reused_tokens += reuse.tokens;
  const auto limit = std::ranges::find(kReuseLimits, reuse.limit) - kReuseLimits.begin();
  PromptLookups& lookups = metrics_.lookups[static_cast<std::size_t>(limit)];
  ++(reuse.tokens > 0 ? lookups.hits : lookups.misses);
}

void EngineRecorder::begin_step(const StepPlan& plan, std::span<Sequence* const> planned,
                                Clock::TimePoint now) {
  step_began_ = now;
  step_tokens_ = 0;
  for (std::size_t i = 0; i < planned.size(); ++i) {
    const PlannedRows& rows = plan.rows[i];
    if (!planned[i]->counted) {
      continue;
    }
    const std::int64_t of_prompt =
        std::clamp<std::int64_t>(planned[i]->prompt_tokens - rows.position, 0, rows.token_count);
    metrics_.prefilled_tokens += of_prompt;
    metrics_.decoded_tokens += rows.token_count - of_prompt;
    step_tokens_ += rows.token_count;
  }
}

void EngineRecorder::end_step(Clock::TimePoint now) {
  if (step_tokens_ == 0) {
    return;
  }
  metrics_.step_seconds.add(seconds_between(step_began_, now));
  metrics_.step_tokens.add(static_cast<double>(step_tokens_));
  step_tokens_ = 0;
}

void EngineRecorder::token_chosen(Sequence& sequence, Clock::TimePoint now) {
  const auto before = std::exchange(sequence.last_token_at, now);
  if (!sequence.counted) {
    return;
  }
  if (before) {
    metrics_.between_tokens_seconds.add(seconds_between(*before, now));
  } else {
    metrics_.first_token_seconds.add(seconds_between(sequence.submitted_at, now));
  }
}

void EngineRecorder::flushed(const CacheFreed& freed) {
  metrics_.flushed_blocks += freed.block_count;
  metrics_.flushed_checkpoints += freed.checkpoint_count;
}

void EngineRecorder::saved(const Result<CacheTransfer>& transfer) {
  metrics_.saved_tokens += transfer ? transfer->tokens : 0;
}

void EngineRecorder::loaded(const Result<CacheTransfer>& transfer) {
  metrics_.loaded_tokens += transfer ? transfer->tokens : 0;
}

void EngineRecorder::finished(const Sequence& sequence, Clock::TimePoint now) {
  if (!sequence.counted) {
    return;
  }
  metrics_.end_to_end_seconds.add(seconds_between(sequence.submitted_at, now));
  if (!sequence.admitted_at) {
    return;
  }
  metrics_.queue_seconds.add(seconds_between(sequence.submitted_at, *sequence.admitted_at));
  metrics_.inference_seconds.add(seconds_between(*sequence.admitted_at, now));
  if (!sequence.prefilled_at) {
    return;
  }
  const double decode_seconds = seconds_between(*sequence.prefilled_at, now);
  const auto tokens = static_cast<double>(sequence.generated_tokens());
  metrics_.prefill_seconds.add(seconds_between(*sequence.admitted_at, *sequence.prefilled_at));
  metrics_.decode_seconds.add(decode_seconds);
  metrics_.prompt_tokens.add(static_cast<double>(sequence.prompt_tokens));
  metrics_.answer_tokens.add(tokens);
  if (tokens > 1.0) {
    metrics_.per_token_seconds.add(decode_seconds / (tokens - 1.0));
  }
}

}  // namespace sluice
