#include "scheduler/scheduler.h"

#include <algorithm>

#include "base/check.h"
#include "base/checked_math.h"

namespace sluice {

Scheduler::Scheduler(const SchedulerConfig& config) : config_(config) {
  SLUICE_CHECK(config.sequences_max >= 1);
  SLUICE_CHECK(config.waiting_max >= 0);
  SLUICE_CHECK(config.step_tokens_max >= 1);
  SLUICE_CHECK(config.step_logit_rows_max >= 1);
  SLUICE_CHECK(config.prefill_step_max >= 1);
  SLUICE_CHECK(config.block_tokens >= 1);
  const auto sequences_max = static_cast<std::size_t>(config.sequences_max);
  waiting_.reserve(static_cast<std::size_t>(config.waiting_max));
  running_.reserve(sequences_max);
  turns_.reserve(sequences_max);
  admitted_.reserve(sequences_max);
  plan_.rows.reserve(sequences_max);
}

void Scheduler::enqueue(const SequenceDemand& demand) {
  SLUICE_CHECK(waiting_count() < config_.waiting_max);
  SLUICE_CHECK(demand.prompt_tokens >= 1);
  SLUICE_CHECK(demand.tokens_max >= 0);
  SLUICE_CHECK(blocks_of(demand) <= config_.block_count);
  const SequenceId last_running = running_.empty() ? -1 : running_.back().demand.sequence;
  const SequenceId last_waiting = waiting_.empty() ? -1 : waiting_.back().sequence;
  SLUICE_CHECK(demand.sequence > last_running);
  SLUICE_CHECK(demand.sequence > last_waiting);
  waiting_.push_back(demand);
}

const StepPlan& Scheduler::plan() {
  plan_.rows.clear();
  plan_.token_count = 0;
  plan_.logit_row_count = 0;
  plan_decode();
  plan_prefill();
  SLUICE_CHECK(plan_.rows.empty() == running_.empty());
  SLUICE_CHECK(plan_.token_count <= config_.step_tokens_max);
  SLUICE_CHECK(plan_.logit_row_count <= config_.step_logit_rows_max);
  return plan_;
}

const std::vector<SequenceId>& Scheduler::admit() {
  admitted_.clear();
  std::size_t count = 0;
  while (count < waiting_.size() && running_count() < config_.sequences_max) {
    const SequenceDemand& demand = waiting_[count];
    const std::int64_t blocks = blocks_of(demand);
    if (blocks > config_.block_count - reserved_blocks_) {
      break;
    }
    reserved_blocks_ += blocks;
    running_.push_back(
        {.demand = demand, .known_tokens = demand.prompt_tokens, .served_at = served_});
    admitted_.push_back(demand.sequence);
    ++count;
  }
  waiting_.erase(waiting_.begin(), waiting_.begin() + static_cast<std::ptrdiff_t>(count));
  return admitted_;
}

void Scheduler::set_computed(SequenceId sequence, std::int64_t tokens) {
  Running& running = *find_running(sequence);
  SLUICE_CHECK(tokens >= running.computed_tokens);
  SLUICE_CHECK(tokens < running.demand.prompt_tokens);
  running.computed_tokens = tokens;
}

void Scheduler::hold(SequenceId sequence, bool held) {
  find_running(sequence)->held = held;
}

// Only the first sequence in prefill takes part in the turns, with one row kept for it: there are
// more turns than rows only when sequences_max exceeds the limits of a step.
void Scheduler::plan_decode() {
  turns_.clear();
  bool has_prefill = false;
  for (std::size_t i = 0; i < running_.size(); ++i) {
    const std::int64_t remaining = running_[i].remaining_tokens();
    SLUICE_CHECK(remaining >= 1);  // else append_token() was forgotten
    if (running_[i].held) {
      continue;
    }
    if (remaining == 1 || !has_prefill) {
      turns_.push_back(i);
      has_prefill = has_prefill || remaining > 1;
    }
  }
  std::sort(turns_.begin(), turns_.end(), [this](std::size_t a, std::size_t b) {
    const std::int64_t served_a = running_[a].served_at;
    const std::int64_t served_b = running_[b].served_at;
    return served_a != served_b ? served_a < served_b : a < b;
  });
  std::int64_t rows_left = config_.step_tokens_max;
  for (const std::size_t i : turns_) {
    if (rows_left == 0) {
      break;
    }
    if (running_[i].remaining_tokens() > 1) {
      --rows_left;
    } else if (can_end(running_[i])) {
      plan_rows(running_[i], 1);
      --rows_left;
    }
  }
}

void Scheduler::plan_prefill() {
  std::int64_t budget =
      std::min(config_.prefill_step_max, config_.step_tokens_max - plan_.token_count);
  for (const Running& running : running_) {
    const std::int64_t remaining = running.remaining_tokens();
    if (remaining == 1 || budget == 0 || running.held) {
      continue;
    }
    const std::int64_t count = std::min(can_end(running) ? remaining : remaining - 1, budget);
    plan_rows(running, count);
    budget -= count;
  }
}

// Whether the last known token of the sequence may be computed in this step.
bool Scheduler::can_end(const Running& running) const {
  return running.demand.tokens_max == 0 || plan_.logit_row_count < config_.step_logit_rows_max;
}

void Scheduler::plan_rows(const Running& running, std::int64_t token_count) {
  const bool ends = token_count == running.remaining_tokens();
  const bool wants_logits = ends && running.demand.tokens_max > 0;
  plan_.rows.push_back({.sequence = running.demand.sequence,
                        .position = running.computed_tokens,
                        .token_count = token_count,
                        .wants_logits = wants_logits});
  plan_.token_count += token_count;
  plan_.logit_row_count += wants_logits ? 1 : 0;
}

void Scheduler::commit() {
  for (const PlannedRows& rows : plan_.rows) {
    Running& running = *find_running(rows.sequence);
    SLUICE_CHECK(running.computed_tokens == rows.position);
    running.computed_tokens += rows.token_count;
    running.served_at = ++served_;
  }
}

void Scheduler::append_token(SequenceId sequence) {
  Running& running = *find_running(sequence);
  SLUICE_CHECK(running.remaining_tokens() == 0);
  ++running.known_tokens;
  SLUICE_CHECK(running.known_tokens <= running.demand.prompt_tokens + running.demand.tokens_max);
}

void Scheduler::remove(SequenceId sequence) {
  const auto waiting = std::find_if(
      waiting_.begin(), waiting_.end(),
      [sequence](const SequenceDemand& demand) { return demand.sequence == sequence; });
  if (waiting != waiting_.end()) {
    waiting_.erase(waiting);
    return;
  }
  const auto running = find_running(sequence);
  reserved_blocks_ -= blocks_of(running->demand);
  running_.erase(running);
}

std::int64_t Scheduler::blocks_of(const SequenceDemand& demand) const {
  return ceil_div(demand.prompt_tokens + demand.tokens_max, config_.block_tokens);
}

std::vector<Scheduler::Running>::iterator Scheduler::find_running(SequenceId sequence) {
  const auto found = std::lower_bound(
      running_.begin(), running_.end(), sequence,
      [](const Running& running, SequenceId id) { return running.demand.sequence < id; });
  SLUICE_CHECK(found != running_.end());
  SLUICE_CHECK(found->demand.sequence == sequence);
  return found;
}

void Scheduler::check_invariants() const {
  SLUICE_CHECK(running_count() <= config_.sequences_max);
  SLUICE_CHECK(waiting_count() <= config_.waiting_max);
  std::int64_t blocks = 0;
  SequenceId last = -1;
  for (const Running& running : running_) {
    SLUICE_CHECK(running.demand.sequence > last);
    SLUICE_CHECK(running.computed_tokens >= 0);
    SLUICE_CHECK(running.remaining_tokens() >= 0);
    SLUICE_CHECK(running.served_at <= served_);
    last = running.demand.sequence;
    blocks += blocks_of(running.demand);
  }
  for (const SequenceDemand& demand : waiting_) {
    SLUICE_CHECK(demand.sequence > last);
    last = demand.sequence;
  }
  SLUICE_CHECK(blocks == reserved_blocks_);
  SLUICE_CHECK(blocks <= config_.block_count);
}

}  // namespace sluice
