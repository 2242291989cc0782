#include "engine/engine_loop.h"

#include <algorithm>
#include <random>
#include <set>
#include <string>
#include <utility>

#include "base/check.h"
#include "engine/cache_transfer.h"
#include "engine/checkpoint_policy.h"
#include "model/step_cost.h"

namespace sluice {
namespace {

std::int64_t sampled_ids(const EngineConfig& config, const Qwen3_5& model) {
  return config.sampled_vocab_size != 0 ? config.sampled_vocab_size : model.config().vocab_size;
}

// What the cache shares is what the model fills.
static_assert(kPrefixBlockTokens == kKvBlockTokens);

// Whatever else is kept, others are certain to go on from here, or it is to be pinned.
constexpr double kNeededWeight = 1e12;

// Operations of a prefill step, by token.
double flops_per_token(const EngineConfig& config, const Qwen3_5& model) {
  const std::int64_t tokens = std::max<std::int64_t>(config.prefill_step_max, 1);
  const PrefillShape step{.tokens = tokens, .step_tokens = tokens};
  const WeightReads weights{.bytes = model.weight_bytes()};
  return prefill_cost(model.config(), weights, step).flops / static_cast<double>(tokens);
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
          .step_score_rows_max = config.score_step_max,
          .prefill_step_max = config.prefill_step_max,
          .block_tokens = kKvBlockTokens,
          .block_count = block_count};
}

}  // namespace

Result<std::unique_ptr<EngineLoop>> EngineLoop::create(Qwen3_5& model, const EngineConfig& config,
                                                       const Clock& clock) {
  const CacheLayout& layout = model.cache_layout();
  const EngineMemory plan =
      SLUICE_TRY(plan_memory(config, layout, model.options(), model.config().vocab_size));
  std::random_device random;
  const std::uint64_t hash_key = (std::uint64_t{random()} << 32) | random();
  Memory memory{
      .cache = SLUICE_TRY(HybridCache::create({.block_bytes = layout.kv_block_bytes,
                                               .slot_bytes = layout.state_slot_bytes,
                                               .running_block_count = plan.kv_block_count,
                                               .running_slot_count = config.sequences_max,
                                               .reuse_bytes = config.reuse_bytes,
                                               .hash_key = hash_key})),
      .logits = SLUICE_TRY(AlignedBuffer::allocate(plan.logits_bytes)),
  };
  return std::unique_ptr<EngineLoop>(new EngineLoop(model, config, plan, clock, std::move(memory)));
}

EngineLoop::EngineLoop(Qwen3_5& model, const EngineConfig& config, const EngineMemory& plan,
                       const Clock& clock, Memory memory)
    : model_(model),
      config_(config),
      clock_(clock),
      memory_(std::move(memory)),
      pins_(memory_.cache),
      pictures_(model.vision(),
                {.kept_bytes_max = config.picture_bytes, .bytes_max = plan.picture_bytes}),
      scheduler_(scheduler_config(config, model.options(), plan.kv_block_count)),
      batch_builder_(
          {.tokens_max = model.options().step_tokens_max, .sequences_max = config.sequences_max}),
      token_chooser_(sampled_ids(config, model)),
      sampled_vocab_size_(sampled_ids(config, model)),
      flops_per_token_(flops_per_token(config, model)),
      kv_block_count_(plan.kv_block_count) {
  sequences_.reserve(static_cast<std::size_t>(outstanding_max(config)));
  planned_.reserve(static_cast<std::size_t>(config.sequences_max));
  awaiting_.reserve(static_cast<std::size_t>(config.sequences_max));
  // One for what happens at admission, one for what follows in the same step.
  deliveries_.reserve(2 * static_cast<std::size_t>(outstanding_max(config)));
}

EngineLoop::~EngineLoop() {
  cancel_all();
  deliver();
}

void EngineLoop::add(std::unique_ptr<Sequence> sequence) {
  SLUICE_CHECK(std::ssize(sequences_) < outstanding_max(config_));
  const SequenceId last = sequences_.empty() ? -1 : sequences_.back()->id;
  SLUICE_CHECK(sequence->id > last);
  pictures_.name_pictures(*sequence);
  scheduler_.enqueue({.sequence = sequence->id,
                      .priority = sequence->priority,
                      .prompt_tokens = sequence->prompt_tokens,
                      .tokens_max = sequence->tokens_max,
                      .is_scored = sequence->needs_scores()});
  sequences_.push_back(std::move(sequence));
}

void EngineLoop::step() {
  SLUICE_CHECK(deliveries_.empty());  // deliver() comes between two steps
  drop_cancelled();
  end_late();
  pins_.end_expired(clock_.now());
  look_up_pins();
  end_following();
  admit();
  encode_pictures();
  scheduler_.set_prefill_beside_decode(prefill_beside_decode());
  const StepPlan& plan = scheduler_.plan();
  if (plan.rows.empty()) {
    return;
  }
  const Clock::TimePoint began = clock_.now();
  forward(plan, began);
  scheduler_.commit();
  keep_results(plan);
  choose_tokens(plan);
  const Clock::TimePoint ended = clock_.now();
  recorder_.end_step(ended);
  prefill_pace_.step_done(plan, seconds_between(began, ended));
}

void EngineLoop::drop_cancelled() {
  for (std::size_t i = sequences_.size(); i-- > 0;) {
    if (sequences_[i]->events->is_cancelled()) {
      finish(*sequences_[i], {.reason = FinishReason::cancelled});
    }
  }
}

// Whoever reads: a stream that nobody takes events from ends as well.
void EngineLoop::end_late() {
  const Clock::TimePoint now = clock_.now();
  for (std::size_t i = sequences_.size(); i-- > 0;) {
    Sequence& sequence = *sequences_[i];
    if (sequence.deadline && *sequence.deadline <= now) {
      finish(sequence, {.reason = FinishReason::error,
                        .error = Error{ErrorCode::deadline,
                                       "the request did not finish within its timeout", ""}});
    }
  }
}

// What is stored already, or will not fit, is answered before its turn: nothing is computed for it.
void EngineLoop::look_up_pins() {
  for (std::size_t i = sequences_.size(); i-- > 0;) {
    Sequence& sequence = *sequences_[i];
    if (sequence.pin && !std::exchange(sequence.pin_looked_up, true)) {
      answer_pin(sequence);
    }
  }
}

// Ends the sequence if its prompt is pinned now, or cannot be.
bool EngineLoop::answer_pin(Sequence& sequence) {
  auto pinned = pins_.pin(sequence.cache_salt, sequence.prompt(), *sequence.pin, clock_.now());
  if (!pinned) {
    finish(sequence, {.reason = FinishReason::error, .error = std::move(pinned).error()});
    return true;
  }
  if (*pinned) {
    finish(sequence, {.reason = FinishReason::length, .pinned = std::move(*pinned)});
    return true;
  }
  return false;
}

void EngineLoop::forward(const StepPlan& plan, Clock::TimePoint began) {
  planned_.clear();
  for (const PlannedRows& rows : plan.rows) {
    Sequence& sequence = *find(rows.sequence);
    memory_.cache.grow(sequence.cache, rows.position + rows.token_count);
    planned_.push_back(&sequence);
  }
  recorder_.begin_step(plan, planned_, began);
  for (std::size_t i = 0; i < plan.rows.size(); ++i) {
    reserve_checkpoints(*planned_[i], plan.rows[i]);
  }
  const CacheMemory cache{.kv_blocks = memory_.cache.blocks(),
                          .state_slots = memory_.cache.slots()};
  const auto logits = static_cast<std::size_t>(plan.logit_row_count * model_.config().vocab_size);
  model_.forward(batch_builder_.build(plan, planned_), cache,
                 std::span(memory_.logits.as<float>(), logits));
  ++steps_;
}

// Of the states inside an answer only the last one is kept.
void EngineLoop::reserve_checkpoints(Sequence& sequence, const PlannedRows& rows) {
  sequence.checkpoints.clear();
  const std::int64_t end = rows.position + rows.token_count;
  for (std::int64_t tokens = (rows.position / kKvBlockTokens + 1) * kKvBlockTokens; tokens <= end;
       tokens += kKvBlockTokens) {
    const double weight = checkpoint_weight(sequence.prompt_tokens, sequence.keep_at, tokens);
    const bool in_answer = tokens > sequence.prompt_tokens;
    if (weight == 0.0 || (in_answer && tokens + kKvBlockTokens <= end)) {
      continue;
    }
    if (in_answer && sequence.answer_checkpoint) {
      const auto [last, slot] = *sequence.answer_checkpoint;
      memory_.cache.drop_unused_checkpoint(sequence.cache, last, slot);
      sequence.answer_checkpoint.reset();
    }
    const auto& awaited = sequence.awaited_at;
    const bool is_needed = std::ranges::find(awaited, tokens) != awaited.end() ||
                           (sequence.pin && tokens == sequence.prompt_tokens);
    if (const auto slot = memory_.cache.reserve_checkpoint(sequence.cache, tokens,
                                                           is_needed ? kNeededWeight : weight)) {
      sequence.checkpoints.push_back({.position = tokens, .state_slot = *slot});
    }
  }
}

// What was computed becomes known to later requests.
void EngineLoop::keep_results(const StepPlan& plan) {
  for (std::size_t i = 0; i < plan.rows.size(); ++i) {
    Sequence& sequence = *planned_[i];
    sequence.computed_tokens = plan.rows[i].position + plan.rows[i].token_count;
    memory_.cache.share(sequence.cache, sequence.tokens, sequence.computed_tokens);
    for (SequencePicture& picture : sequence.pictures) {
      if (picture.end() <= sequence.computed_tokens) {
        picture.rows.reset();
      }
    }
    for (const StateCheckpoint& made : sequence.checkpoints) {
      const double weight =
          checkpoint_weight(sequence.prompt_tokens, sequence.keep_at, made.position);
      const SlotId slot =
          memory_.cache.keep_checkpoint(sequence.cache, made.position, made.state_slot, weight);
      if (made.position > sequence.prompt_tokens && slot == made.state_slot) {
        sequence.answer_checkpoint = made;
      }
    }
  }
}

void EngineLoop::choose_tokens(const StepPlan& plan) {
  std::int64_t logit_row = 0;
  for (std::size_t i = 0; i < plan.rows.size(); ++i) {
    Sequence& sequence = *planned_[i];
    const PlannedRows& rows = plan.rows[i];
    logit_row += rows.logit_row_count;
    if (sequence.needs_scores() && !score_prompt(sequence, rows, logit_row)) {
      continue;
    }
    if (rows.position + rows.token_count < std::ssize(sequence.tokens)) {
      continue;
    }
    if (sequence.tokens_max > 0) {
      choose_token(sequence, logits_of(logit_row - 1));
    } else {
      sequence.prefilled_at = clock_.now();
      finish_prefill(sequence);
    }
  }
}

// What the rows, whose logits end before `logit_row`, say of the prompt. False: the sequence is
// gone.
bool EngineLoop::score_prompt(Sequence& sequence, const PlannedRows& rows, std::int64_t logit_row) {
  std::vector<TokenEvent>& scores = sequence.prompt_scores;
  if (scores.empty()) {
    scores.push_back({.token_id = sequence.tokens.front()});
  }
  for (std::int64_t k = rows.logit_row_count; k > 0 && std::ssize(scores) < sequence.prompt_tokens;
       --k) {
    const TokenId token = sequence.tokens[scores.size()];
    auto score = token_chooser_.score(logits_of(logit_row - k), token, sequence.prompt_logprobs);
    if (!score) {
      finish(sequence, {.reason = FinishReason::error, .error = std::move(score).error()});
      return false;
    }
    scores.push_back(std::move(*score));
  }
  if (std::ssize(scores) == sequence.prompt_tokens) {
    delivery_of(sequence).happened.scored = PromptScored{std::move(scores)};
    sequence.prompt_logprobs = -1;
  }
  return true;
}

// Of a sequence that wants no answer.
void EngineLoop::finish_prefill(Sequence& sequence) {
  if (!sequence.pin) {
    finish(sequence, {.reason = FinishReason::length});
  } else if (!answer_pin(sequence)) {
    finish(sequence,
           {.reason = FinishReason::error,
            .error = Error{ErrorCode::resource_exhausted,
                           "other requests hold the memory for the state to be pinned", "pin"}});
  }
}

void EngineLoop::choose_token(Sequence& sequence, std::span<const float> logits) {
  Result<ChosenToken> chosen = token_chooser_.choose(sequence, logits);
  if (!sequence.prefilled_at) {
    sequence.prefilled_at = clock_.now();
  }
  if (!chosen) {
    Error error = std::move(chosen).error();
    error.message = "request " + sequence.request_id + ", token at position " +
                    std::to_string(std::ssize(sequence.tokens)) + ": " + error.message;
    finish(sequence, {.reason = FinishReason::error, .error = std::move(error)});
    return;
  }
  const TokenId token = chosen->event.token_id;
  if (std::find(sequence.stop_token_ids.begin(), sequence.stop_token_ids.end(), token) !=
      sequence.stop_token_ids.end()) {
    finish(sequence, {.reason = FinishReason::stop, .stop_token_id = token});
    return;
  }
  sequence.tokens.push_back(token);
  recorder_.token_chosen(sequence, clock_.now());
  scheduler_.append_token(sequence.id);
  delivery_of(sequence).happened.token = std::move(chosen->event);
  if (chosen->is_last) {  // said at once: finding out would take another forward pass
    finish(sequence, {.reason = FinishReason::stop});
  } else if (sequence.generated_tokens() == sequence.tokens_max) {
    finish(sequence, {.reason = FinishReason::length});
  }
}

// The entry of this sequence among the events of this step; the last of two if others were between.
EngineLoop::Delivery& EngineLoop::delivery_of(const Sequence& sequence) {
  if (deliveries_.empty() || deliveries_.back().events != sequence.events) {
    deliveries_.push_back({.events = sequence.events, .happened = {}});
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
                    .cached_tokens = sequence.reuse ? sequence.reuse->tokens : 0,
                    .completion_tokens = sequence.generated_tokens()};
  finished.reuse = sequence.reuse;
  recorder_.finished(sequence, now);
  delivery_of(sequence).happened.finished = std::move(finished);

  scheduler_.remove(sequence.id);
  if (sequence.running) {
    memory_.cache.close(sequence.cache);
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

CacheFlushed EngineLoop::flush_cache(const CacheFlush& what) {
  CacheFreed freed;
  if (!what.salts) {
    if (!what.keep_pins) {
      pins_.unpin_all();
    }
    pictures_.forget_rows();
    freed = memory_.cache.forget();
  } else {
    for (const std::string& salt : *what.salts) {
      if (!what.keep_pins) {
        pins_.unpin_all_of(salt);
      }
      freed += memory_.cache.forget(salt);
    }
  }
  recorder_.flushed(freed);
  return {.tokens = freed.block_count * kKvBlockTokens, .bytes = freed.bytes};
}

std::vector<PinnedPrefix> EngineLoop::list_pins() {
  pins_.end_expired(clock_.now());
  return pins_.list();
}

bool EngineLoop::unpin(std::string_view id) {
  pins_.end_expired(clock_.now());
  return pins_.unpin(id);
}

Result<CacheTransfer> EngineLoop::save_cache(const CacheFile& file) {
  auto saved = sluice::save_cache(memory_.cache, pins_, pictures_.names(), file, clock_);
  recorder_.saved(saved);
  return saved;
}

Result<CacheTransfer> EngineLoop::load_cache(const CacheFile& file) {
  auto loaded = sluice::load_cache(memory_.cache, pins_, pictures_.names(), file, clock_);
  recorder_.loaded(loaded);
  return loaded;
}

void EngineLoop::deliver() {
  for (Delivery& delivery : deliveries_) {
    delivery.events->publish(std::move(delivery.happened));
  }
  deliveries_.clear();
}

EngineStatus EngineLoop::status() const {
  const CacheUse use = memory_.cache.use();
  return {.running = scheduler_.running_count(),
          .waiting = scheduler_.waiting_count(),
          .steps = steps_,
          .kv_blocks_used = use.block_count,
          .kv_blocks_running = scheduler_.reserved_block_count(),
          .kv_blocks_max = kv_block_count_,
          .kept_blocks = use.shared_block_count,
          .kept_tokens = use.shared_block_count * kKvBlockTokens,
          .kept_checkpoints = use.checkpoint_count,
          .kv_bytes = use.block_bytes,
          .kept_bytes = use.shared_bytes,
          .cache_bytes = use.bytes,
          .cache_bytes_max = use.bytes_max,
          .pinned_prefixes = use.pinned_count,
          .pinned_bytes = use.pinned_bytes,
          .picture_bytes = pictures_.rows_bytes(),
          .picture_bytes_in_all = pictures_.rows_bytes_in_all(),
          .pictures_encoded = pictures_.encoded_count(),
          .pictures_reused = pictures_.reused_count(),
          .evicted_blocks = use.evicted_block_count,
          .evicted_checkpoints = use.evicted_checkpoint_count,
          .preemptions = preemptions_,
          .metrics = recorder_.metrics()};
}

Sequence* EngineLoop::find(SequenceId id) {
  const auto found = std::lower_bound(
      sequences_.begin(), sequences_.end(), id,
      [](const std::unique_ptr<Sequence>& entry, SequenceId wanted) { return entry->id < wanted; });
  return found != sequences_.end() && (*found)->id == id ? found->get() : nullptr;
}

std::span<float> EngineLoop::logits_of(std::int64_t row) {
  return {memory_.logits.as<float>() + row * model_.config().vocab_size,
          static_cast<std::size_t>(sampled_vocab_size_)};
}

void EngineLoop::check_invariants() const {
  memory_.cache.check_invariants();
  pictures_.check_invariants();
  scheduler_.check_invariants();
  SLUICE_CHECK(scheduler_.running_count() + scheduler_.waiting_count() == std::ssize(sequences_));
  std::set<BlockId> blocks;
  std::int64_t slots = 0;
  for (const auto& sequence : sequences_) {
    blocks.insert(sequence->cache.block_table.begin(), sequence->cache.block_table.end());
    slots += sequence->running ? 1 : 0;
  }
  const CacheUse use = memory_.cache.use();
  SLUICE_CHECK(std::ssize(blocks) <= scheduler_.reserved_block_count());
  SLUICE_CHECK(std::ssize(blocks) <= use.block_count);
  SLUICE_CHECK(use.block_count <= std::ssize(blocks) + use.shared_block_count);
  SLUICE_CHECK(slots == scheduler_.running_count());
  SLUICE_CHECK(use.pinned_count == pins_.count());
}

}  // namespace sluice
