// One request inside the engine: its tokens, its limits and, while it runs, its cache handles.
//
// Thread rule: made by submit() on any thread, then owned by the engine thread.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "cache/hybrid_cache.h"
#include "engine/generation_stream.h"
#include "engine/picture_shelf.h"
#include "model/forward_batch.h"
#include "model/mrope.h"
#include "request/prompt_reuse.h"
#include "request/request.h"
#include "request/token_constraint.h"
#include "scheduler/step_plan.h"

namespace sluice {

// A picture of a prompt; its placeholders in Sequence::tokens are `name` (engine/picture_shelf.h).
struct SequencePicture {
  std::int64_t position = 0;
  std::shared_ptr<const VisionInput> input;
  TokenId name = 0;  // once the engine has it
  std::shared_ptr<const PictureRows> rows =
      nullptr;  // from when they are known until they are computed

  std::int64_t end() const { return position + input->token_count(); }
};

struct Sequence {
  SequenceId id = 0;  // given by the submission queue
  std::string request_id;
  SamplingParams sampling;
  std::vector<TokenId> stop_token_ids;  // empty when eos is ignored
  std::int64_t priority = 0;
  std::int64_t prompt_tokens = 0;
  std::int64_t tokens_max = 0;  // generated at most; prompt_tokens + tokens_max <= context_max
  std::vector<TokenId> tokens;  // prompt, then generated; reserved for all
  std::vector<SequencePicture> pictures;  // of the prompt, ascending
  MropePositions rope_positions;
  std::shared_ptr<EventQueue> events;
  std::unique_ptr<TokenConstraint> constraint;  // has accepted all generated tokens; may be null

  std::int32_t prompt_logprobs = -1;      // until the prompt is scored
  std::vector<TokenEvent> prompt_scores;  // so far

  std::string cache_salt;
  std::optional<PinLabel> pin;        // the prompt is to be pinned
  bool pin_looked_up = false;         // whether that needs computing at all
  std::vector<std::int64_t> keep_at;  // see engine/checkpoint_policy.h; ascending

  bool running = false;                              // else waiting: new, or preempted
  SequenceCache cache;                               // while running
  std::int64_t computed_tokens = 0;                  // in its blocks and state
  std::optional<PromptReuse> reuse;                  // of the prompt, once looked up
  std::optional<StateCheckpoint> answer_checkpoint;  // the last one inside the answer
  std::vector<StateCheckpoint> checkpoints;          // to be written in this step
  // Another sequence computes the first leader_tokens tokens of this prompt: wait for them.
  std::optional<SequenceId> leader;
  bool awaits_pictures = false;  // rows of its prompt are being encoded
  std::int64_t leader_tokens = 0;
  std::vector<std::int64_t> awaited_at;  // where others wait for this one

  std::optional<Clock::TimePoint> deadline;
  Clock::TimePoint submitted_at;
  std::optional<Clock::TimePoint> admitted_at;   // for the first time
  std::optional<Clock::TimePoint> prefilled_at;  // first token chosen
  std::optional<Clock::TimePoint> last_token_at;
  bool counted = true;  // by EngineRecorder

  std::span<const TokenId> prompt() const {
    return std::span(tokens).first(static_cast<std::size_t>(prompt_tokens));
  }
  bool needs_scores() const { return prompt_logprobs >= 0; }
  // What can be taken over instead of computed: all but the last token, whose logits are wanted.
  std::span<const TokenId> resumable() const {
    return std::span(tokens).first(needs_scores() ? 0 : tokens.size() - 1);
  }
  std::span<const TokenId> generated() const {
    return std::span(tokens).subspan(static_cast<std::size_t>(prompt_tokens));
  }
  std::int64_t generated_tokens() const { return std::ssize(tokens) - prompt_tokens; }
};

// What a request is checked against.
struct SequenceLimits {
  std::int64_t context_max = 0;
  std::int64_t vocab_size = 0;          // ids of the prompt: [0, this)
  std::int64_t sampled_vocab_size = 0;  // ids of the answer: [0, this)
  bool can_score = false;               // prompts
  std::int64_t vision_patches_max = 0;  // of a picture; 0: none is seen
};

// Checks the request and reserves what its answer will need. Errors: see Engine::submit().
Result<std::unique_ptr<Sequence>> make_sequence(Request request, std::function<void()> on_ready,
                                                const SequenceLimits& limits, Clock::TimePoint now);

}  // namespace sluice
