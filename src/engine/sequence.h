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
#include "cache/block_pool.h"
#include "cache/state_pool.h"
#include "engine/generation_stream.h"
#include "request/request.h"
#include "scheduler/step_plan.h"

namespace sluice {

struct Sequence {
  SequenceId id = 0;  // given by the submission queue
  std::string request_id;
  SamplingParams sampling;
  std::vector<TokenId> stop_token_ids;  // empty when eos is ignored
  std::int64_t prompt_tokens = 0;
  std::int64_t tokens_max = 0;  // generated at most; prompt_tokens + tokens_max <= context_max
  std::vector<TokenId> tokens;  // prompt, then generated; reserved for all
  std::shared_ptr<EventQueue> events;

  std::vector<BlockId> block_table;  // blocks of the computed tokens; reserved for all
  std::optional<SlotId> state_slot;

  Clock::TimePoint submitted_at;
  std::optional<Clock::TimePoint> admitted_at;
  std::optional<Clock::TimePoint> prefilled_at;  // first token chosen

  std::span<const TokenId> prompt() const {
    return std::span(tokens).first(static_cast<std::size_t>(prompt_tokens));
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
};

// Checks the request and reserves what its answer will need. Errors: see Engine::submit().
Result<std::unique_ptr<Sequence>> make_sequence(Request request, std::function<void()> on_ready,
                                                const SequenceLimits& limits, Clock::TimePoint now);

}  // namespace sluice
