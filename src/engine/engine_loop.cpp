#include "engine/engine_loop.h"

#include <algorithm>
#include <string>
#include <utility>

#include "base/check.h"

namespace sluice {
namespace {

std::int64_t sampled_ids(const EngineConfig& config, const Qwen3_5& model) {
  return config.sampled_vocab_size != 0 ? config.sampled_vocab_size : model.config().vocab_size;
}

std::int64_t outstanding_max(const EngineConfig& config) {
  return config.sequences_max + config.queue_max;
}

SchedulerConfig scheduler_config(const EngineConfig& config, const ModelOptions& options,
                                 std::int64_t block_count) {
  return {.sequences_max = config.sequences_max,
          .waiting_max = outstanding_max(config),
          .step_tokens_max = options.step_tokens_max,
          .step_logit_rows_max = std::min(options.step_logit_rows_max, config.sequences_max),
          .prefill_step_max = config.prefill_step_max,
          .block_tokens = kKvBlockTokens,
          .block_count = block_count};
}

}  // namespace

Result<std::unique_ptr<EngineLoop>> EngineLoop::create(Qwen3_5& model, const EngineConfig& config,
                                                       const Clock& clock) {
  const CacheLayout& layout = model.cache_layout();
  const EngineMemory memory =
      SLUICE_TRY(plan_memory(config, layout, model.options(), model.config().vocab_size));
  Pools pools{
      .blocks = SLUICE_TRY(BlockPool::create(
          {.block_bytes = layout.kv_block_bytes, .block_count = memory.kv_block_count})),
      .states = SLUICE_TRY(StatePool::create(
          {.slot_bytes = layout.state_slot_bytes, .slot_count = config.sequences_max})),
      .logits = SLUICE_TRY(AlignedBuffer::allocate(memory.logits_bytes)),
  };
  return std::unique_ptr<EngineLoop>(new EngineLoop(model, config, clock, std::move(pools)));
}

EngineLoop::EngineLoop(Qwen3_5& model, const EngineConfig& config, const Clock& clock, Pools pools)
    : model_(model),
      config_(config),
      clock_(clock),
      pools_(std::move(pools)),
      scheduler_(scheduler_config(config, model.options(), pools_.blocks.block_count())),
      batch_builder_(
          {.tokens_max = model.options().step_tokens_max, .sequences_max = config.sequences_max}),
      sampler_(sampled_ids(config, model)),
      sampled_vocab_size_(sampled_ids(config, model)) {
  sequences_.reserve(static_cast<std::size_t>(outstanding_max(config)));
  planned_.reserve(static_cast<std::size_t>(config.sequences_max));
  deliveries_.reserve(static_cast<std::size_t>(outstanding_max(config)));
}

EngineLoop::~EngineLoop() {
  cancel_all();
  deliver();
}

void EngineLoop::add(std::unique_ptr<Sequence> sequence) {
  SLUICE_CHECK(std::ssize(sequences_) < outstanding_max(config_));
  const SequenceId last = sequences_.empty() ? -1 : sequences_.back()->id;
  SLUICE_CHECK(sequence->id > last);
  scheduler_.enqueue({.sequence = sequence->id,
                      .prompt_tokens = sequence->prompt_tokens,
                      .tokens_max = sequence->tokens_max});
  sequences_.push_back(std::move(sequence));
}

void EngineLoop::step() {
  SLUICE_CHECK(deliveries_.empty());  // deliver() comes between two steps
  drop_cancelled();
  const StepPlan& plan = scheduler_.plan();
  if (plan.rows.empty()) {
    return;
  }
  admit(plan);
  forward(plan);
  scheduler_.commit();
  choose_tokens(plan);
}

void EngineLoop::drop_cancelled() {
  for (std::size_t i = sequences_.size(); i-- > 0;) {
    if (sequences_[i]->events->is_cancelled()) {
      finish(*sequences_[i], {.reason = FinishReason::cancelled});
    }
  }
}

void EngineLoop::admit(const StepPlan& plan) {
  for (const SequenceId id : plan.admitted) {
    Sequence& sequence = find(id);
    sequence.state_slot = pools_.states.allocate();
    SLUICE_CHECK(sequence.state_slot.has_value());  // as many slots as running sequences
    sequence.admitted_at = clock_.now();
  }
}

void EngineLoop::forward(const StepPlan& plan) {
  planned_.clear();
  for (const PlannedRows& rows : plan.rows) {
    Sequence& sequence = find(rows.sequence);
    while (std::ssize(sequence.block_table) * kKvBlockTokens < rows.position + rows.token_count) {
      const std::optional<BlockId> block = pools_.blocks.allocate();
      SLUICE_CHECK(block.has_value());  // reserved at admission
      sequence.block_table.push_back(*block);
    }
    planned_.push_back(&sequence);
  }
  const CacheMemory cache{.kv_blocks = pools_.blocks.data(), .state_slots = pools_.states.data()};
  const auto logits = static_cast<std::size_t>(plan.logit_row_count * model_.config().vocab_size);
  model_.forward(batch_builder_.build(plan, planned_), cache,
                 std::span(pools_.logits.as<float>(), logits));
  ++steps_;
}

void EngineLoop::choose_tokens(const StepPlan& plan) {
  std::int64_t logit_row = 0;
  for (std::size_t i = 0; i < plan.rows.size(); ++i) {
    Sequence& sequence = *planned_[i];
    const std::int64_t computed = plan.rows[i].position + plan.rows[i].token_count;
    if (plan.rows[i].wants_logits) {
      choose_token(sequence, logits_of(logit_row++));
    } else if (sequence.tokens_max == 0 && computed == sequence.prompt_tokens) {
      sequence.prefilled_at = clock_.now();
      finish(sequence, {.reason = FinishReason::length});
    }
  }
}

void EngineLoop::choose_token(Sequence& sequence, std::span<const float> logits) {
  const std::int64_t position = std::ssize(sequence.tokens);
  Result<TokenEvent> chosen = sampler_.sample({.logits = logits,
                                               .prompt = sequence.prompt(),
                                               .generated = sequence.generated(),
                                               .allowed = {},
                                               .position = position},
                                              sequence.sampling);
  if (!sequence.prefilled_at) {
    sequence.prefilled_at = clock_.now();
  }
  if (!chosen) {
    Error error = std::move(chosen).error();
    error.message = "request " + sequence.request_id + ", token at position " +
                    std::to_string(position) + ": " + error.message;
    finish(sequence, {.reason = FinishReason::error, .error = std::move(error)});
    return;
  }
  const TokenId token = chosen->token_id;
  if (std::find(sequence.stop_token_ids.begin(), sequence.stop_token_ids.end(), token) !=
      sequence.stop_token_ids.end()) {
    finish(sequence, {.reason = FinishReason::stop, .stop_token_id = token});
    return;
  }
  sequence.tokens.push_back(token);
  scheduler_.append_token(sequence.id);
  delivery_of(sequence).token = std::move(*chosen);
  if (sequence.generated_tokens() == sequence.tokens_max) {
    finish(sequence, {.reason = FinishReason::length});
  }
}

// The entry of this sequence among the events of this step.
EngineLoop::Delivery& EngineLoop::delivery_of(const Sequence& sequence) {
  if (deliveries_.empty() || deliveries_.back().events != sequence.events) {
    deliveries_.push_back({.events = sequence.events, .token = {}, .finished = {}});
  }
  return deliveries_.back();
}

void EngineLoop::finish(Sequence& sequence, GenerationFinished finished) {
  const Clock::TimePoint now = clock_.now();
  const Clock::TimePoint admitted_at = sequence.admitted_at.value_or(now);
  const Clock::TimePoint prefilled_at = sequence.prefilled_at.value_or(now);
  finished.timings = {.queue_seconds = seconds_between(sequence.submitted_at, admitted_at),
                      .prefill_seconds = seconds_between(admitted_at, prefilled_at),
                      .decode_seconds = seconds_between(prefilled_at, now)};
  finished.usage = {.prompt_tokens = sequence.prompt_tokens,
                    .cached_tokens = 0,
                    .completion_tokens = sequence.generated_tokens()};
  delivery_of(sequence).finished = std::move(finished);

  scheduler_.remove(sequence.id);
  for (const BlockId block : sequence.block_table) {
    pools_.blocks.release(block);
  }
  if (sequence.state_slot) {
    pools_.states.free(*sequence.state_slot);
  }
  ++ended_count_;
  const SequenceId id = sequence.id;
  sequences_.erase(std::lower_bound(sequences_.begin(), sequences_.end(), id,
                                    [](const std::unique_ptr<Sequence>& entry, SequenceId wanted) {
                                      return entry->id < wanted;
                                    }));
}

void EngineLoop::cancel_all() {
  while (!sequences_.empty()) {
    finish(*sequences_.back(), {.reason = FinishReason::cancelled});
  }
}

void EngineLoop::deliver() {
  for (Delivery& delivery : deliveries_) {
    delivery.events->publish(std::move(delivery.token), std::move(delivery.finished));
  }
  deliveries_.clear();
}

EngineStatus EngineLoop::status() const {
  return {.running = scheduler_.running_count(),
          .waiting = scheduler_.waiting_count(),
          .steps = steps_,
          .kv_blocks_total = pools_.blocks.block_count(),
          .kv_blocks_used = pools_.blocks.used_count()};
}

Sequence& EngineLoop::find(SequenceId id) {
  const auto found = std::lower_bound(
      sequences_.begin(), sequences_.end(), id,
      [](const std::unique_ptr<Sequence>& entry, SequenceId wanted) { return entry->id < wanted; });
  SLUICE_CHECK(found != sequences_.end());
  SLUICE_CHECK((*found)->id == id);
  return **found;
}

std::span<float> EngineLoop::logits_of(std::int64_t row) {
  return {pools_.logits.as<float>() + row * model_.config().vocab_size,
          static_cast<std::size_t>(sampled_vocab_size_)};
}

void EngineLoop::check_invariants() const {
  pools_.blocks.check_invariants();
  pools_.states.check_invariants();
  scheduler_.check_invariants();
  SLUICE_CHECK(scheduler_.running_count() + scheduler_.waiting_count() == std::ssize(sequences_));
  std::int64_t blocks = 0;
  std::int64_t slots = 0;
  for (const auto& sequence : sequences_) {
    for (const BlockId block : sequence->block_table) {
      SLUICE_CHECK(pools_.blocks.reference_count(block) == 1);  // nothing is shared yet
    }
    blocks += std::ssize(sequence->block_table);
    slots += sequence->state_slot ? 1 : 0;
  }
  SLUICE_CHECK(blocks == pools_.blocks.used_count());
  SLUICE_CHECK(blocks <= scheduler_.reserved_block_count());
  SLUICE_CHECK(slots == pools_.states.used_count());
  SLUICE_CHECK(slots == scheduler_.running_count());
}

}  // namespace sluice
