#include "scheduler/scheduler.h"

#include <algorithm>
#include <optional>
#include <tuple>

#include "base/check.h"
#include "base/checked_math.h"

namespace sluice {
namespace {

constexpr auto id_of = [](const auto& entry) { return entry.demand.sequence; };

}  // namespace

Scheduler::Scheduler(const SchedulerConfig& config)
    : config_(config), prefill_beside_decode_max_(config.prefill_step_max) {
  SLUICE_CHECK(config.sequences_max >= 1);
  SLUICE_CHECK(config.waiting_max >= 0);
  SLUICE_CHECK(config.step_tokens_max >= 1);
  SLUICE_CHECK(config.step_logit_rows_max >= 1);
  SLUICE_CHECK(config.step_score_rows_max >= 0);
  SLUICE_CHECK(config.prefill_step_max >= 1);
  SLUICE_CHECK(config.block_tokens >= 1);
  const auto sequences_max = static_cast<std::size_t>(config.sequences_max);
  waiting_.reserve(static_cast<std::size_t>(config.waiting_max) + sequences_max);
  running_.reserve(sequences_max);
  turns_.reserve(sequences_max);
  shares_.reserve(sequences_max);
  admission_.preempted.reserve(sequences_max);
  admission_.admitted.reserve(sequences_max);
  plan_.rows.reserve(sequences_max);
}

void Scheduler::enqueue(const SequenceDemand& demand) {
  SLUICE_CHECK(waiting_count() < config_.waiting_max);
  SLUICE_CHECK(demand.prompt_tokens >= 1);
  SLUICE_CHECK(demand.tokens_max >= 0);
  SLUICE_CHECK(!demand.is_scored || config_.step_score_rows_max > 0);
  SLUICE_CHECK(blocks_of(demand.prompt_tokens + demand.tokens_max) <= config_.block_count);
  SLUICE_CHECK(demand.sequence > last_sequence_);
  last_sequence_ = demand.sequence;
  wait({.demand = demand, .known_tokens = demand.prompt_tokens});
}

void Scheduler::wait(const Entry& entry) {
  const auto place = std::upper_bound(
      waiting_.begin(), waiting_.end(), entry,
      [](const Entry& waiting, const Entry& other) { return waiting.is_before(other); });
  waiting_.insert(place, entry);
}

const Scheduler::Admission& Scheduler::admit() {
  admission_.preempted.clear();
  admission_.admitted.clear();
  while (reserved_blocks_ > config_.block_count) {
    preempt(last_in_order());
  }
  while (!waiting_.empty()) {
    Entry entry = waiting_.front();
    if (!fits_after_preemption(entry)) {
      break;
    }
    while (!fits(entry)) {
      preempt(last_in_order());
    }
    waiting_.erase(waiting_.begin());  // the preempted come after it
    entry.served_at = served_;
    reserved_blocks_ += blocks_of(entry);
    running_.insert(std::ranges::lower_bound(running_, entry.demand.sequence, {}, id_of), entry);
    admission_.admitted.push_back(entry.demand.sequence);
  }
  std::ranges::sort(admission_.admitted);
  return admission_;
}

// Whether it fits once everybody of a worse priority is gone.
bool Scheduler::fits_after_preemption(const Entry& entry) const {
  const auto is_better = [&entry](const Entry& running) {
    return running.demand.priority <= entry.demand.priority;
  };
  return fits_beside(entry, is_better);
}

bool Scheduler::fits(const Entry& entry) const {
  return fits_beside(entry, [](const Entry&) { return true; });
}

// Whether the sequence fits beside those that stay: their blocks, and one more for each that can
// still grow. Alone it always fits.
template <class Stays>
bool Scheduler::fits_beside(const Entry& entry, Stays stays) const {
  std::int64_t count = 1;
  std::int64_t blocks = blocks_of(entry) + (can_grow(entry) ? 1 : 0);
  for (const Entry& running : running_) {
    if (stays(running)) {
      ++count;
      blocks += blocks_of(running) + (can_grow(running) ? 1 : 0);
    }
  }
  return count == 1 || (count <= config_.sequences_max && blocks <= config_.block_count);
}

// Whether it may need another block before it ends.
bool Scheduler::can_grow(const Entry& entry) const {
  return blocks_of(entry.demand.prompt_tokens + entry.demand.tokens_max) > blocks_of(entry);
}

Scheduler::Entries::iterator Scheduler::last_in_order() {
  return std::ranges::max_element(running_,
                                  [](const Entry& a, const Entry& b) { return a.is_before(b); });
}

void Scheduler::preempt(Entries::iterator running) {
  Entry entry = *running;
  reserved_blocks_ -= blocks_of(entry);
  running_.erase(running);
  if (entry.computed_tokens + 1 >= entry.demand.prompt_tokens) {
    entry.demand.is_scored = false;  // all scores are known: what it computes again tells nothing
  }
  entry.computed_tokens = 0;
  entry.held = false;
  admission_.preempted.push_back(entry.demand.sequence);
  wait(entry);
}

void Scheduler::set_computed(SequenceId sequence, std::int64_t tokens) {
  Entry& running = *find_running(sequence);
  SLUICE_CHECK(tokens >= running.computed_tokens);
  SLUICE_CHECK(tokens < running.known_tokens);
  running.computed_tokens = tokens;
}

void Scheduler::hold(SequenceId sequence, bool held) {
  find_running(sequence)->held = held;
}

const StepPlan& Scheduler::plan() {
  SLUICE_CHECK(reserved_blocks_ <= config_.block_count);
  plan_.rows.clear();
  plan_.token_count = 0;
  plan_.logit_row_count = 0;
  score_rows_ = 0;
  plan_decode();
  plan_prefill();
  SLUICE_CHECK(plan_.rows.empty() == std::ranges::all_of(running_, &Entry::held));
  SLUICE_CHECK(plan_.token_count <= config_.step_tokens_max);
  SLUICE_CHECK(plan_.logit_row_count - score_rows_ <= config_.step_logit_rows_max);
  SLUICE_CHECK(score_rows_ <= config_.step_score_rows_max);
  return plan_;
}

// Only the first sequence in prefill takes part in the turns, with one row kept for it: there are
// more turns than rows only when sequences_max exceeds the limits of a step.
void Scheduler::plan_decode() {
  turns_.clear();
  std::optional<std::size_t> first_prefill;
  for (std::size_t i = 0; i < running_.size(); ++i) {
    const std::int64_t remaining = running_[i].remaining_tokens();
    SLUICE_CHECK(remaining >= 1);  // else append_token() was forgotten
    if (running_[i].held) {
      continue;
    }
    if (remaining == 1) {
      turns_.push_back(i);
    } else if (!first_prefill || running_[i].is_before(running_[*first_prefill])) {
      first_prefill = i;
    }
  }
  if (first_prefill) {
    turns_.push_back(*first_prefill);
  }
  std::ranges::sort(turns_, {},
                    [this](std::size_t i) { return std::pair(running_[i].served_at, i); });
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
  turns_.clear();
  for (std::size_t i = 0; i < running_.size(); ++i) {
    if (running_[i].remaining_tokens() > 1 && !running_[i].held) {
      turns_.push_back(i);
    }
  }
  if (turns_.empty()) {
    return;
  }
  // The first in order, then the others by what they have left.
  std::ranges::iter_swap(turns_.begin(), std::ranges::min_element(turns_, [this](auto a, auto b) {
                           return running_[a].is_before(running_[b]);
                         }));
  std::ranges::sort(turns_.begin() + 1, turns_.end(), {}, [this](std::size_t i) {
    return std::tuple(running_[i].demand.priority, running_[i].remaining_tokens(), i);
  });
  const std::int64_t step_max =
      plan_.rows.empty() ? config_.prefill_step_max : prefill_beside_decode_max_;
  std::int64_t budget = std::min(step_max, config_.step_tokens_max - plan_.token_count);
  std::int64_t score_budget = config_.step_score_rows_max;
  shares_.assign(running_.size(), 0);
  const auto give = [&](std::size_t i, std::int64_t most) {
    const bool scored = running_[i].needs_scores();
    const std::int64_t room = scored ? std::min(most, score_budget) : most;
    const std::int64_t rows = std::min(running_[i].remaining_tokens() - shares_[i], room);
    shares_[i] += rows;
    budget -= rows;
    score_budget -= scored ? rows : 0;
  };
  give(turns_.front(), (budget + 1) / 2);
  for (std::size_t k = 1; k < turns_.size(); ++k) {
    give(turns_[k], budget);
  }
  give(turns_.front(), budget);
  for (std::size_t i = 0; i < running_.size(); ++i) {
    const bool ends = shares_[i] == running_[i].remaining_tokens();
    const std::int64_t rows = ends && !can_end(running_[i]) ? shares_[i] - 1 : shares_[i];
    if (rows > 0) {
      plan_rows(running_[i], rows);
    }
  }
}

// Whether the last known token of the sequence may be computed in this step.
bool Scheduler::can_end(const Entry& running) const {
  return running.demand.tokens_max == 0 || running.needs_scores() ||
         plan_.logit_row_count - score_rows_ < config_.step_logit_rows_max;
}

void Scheduler::plan_rows(const Entry& running, std::int64_t token_count) {
  const bool ends = token_count == running.remaining_tokens();
  const bool scored = running.needs_scores();
  const std::int64_t logit_rows = scored                                  ? token_count
                                  : ends && running.demand.tokens_max > 0 ? 1
                                                                          : 0;
  plan_.rows.push_back({.sequence = running.demand.sequence,
                        .position = running.computed_tokens,
                        .token_count = token_count,
                        .logit_row_count = logit_rows});
  plan_.token_count += token_count;
  plan_.logit_row_count += logit_rows;
  score_rows_ += scored ? logit_rows : 0;
}

void Scheduler::set_prefill_beside_decode(std::int64_t rows_max) {
  SLUICE_CHECK(rows_max >= 0);
  prefill_beside_decode_max_ = std::min(rows_max, config_.prefill_step_max);
}

void Scheduler::commit() {
  for (const PlannedRows& rows : plan_.rows) {
    Entry& running = *find_running(rows.sequence);
    SLUICE_CHECK(running.computed_tokens == rows.position);
    running.computed_tokens += rows.token_count;
    running.served_at = ++served_;
  }
}

void Scheduler::append_token(SequenceId sequence) {
  Entry& running = *find_running(sequence);
  SLUICE_CHECK(running.remaining_tokens() == 0);
  reserved_blocks_ -= blocks_of(running);
  ++running.known_tokens;
  reserved_blocks_ += blocks_of(running);
  SLUICE_CHECK(running.known_tokens <= running.demand.prompt_tokens + running.demand.tokens_max);
}

void Scheduler::remove(SequenceId sequence) {
  const auto waiting = std::ranges::find(waiting_, sequence, id_of);
  if (waiting != waiting_.end()) {
    waiting_.erase(waiting);
    return;
  }
  const auto running = find_running(sequence);
  reserved_blocks_ -= blocks_of(*running);
  running_.erase(running);
}

std::int64_t Scheduler::blocks_of(std::int64_t tokens) const {
  return ceil_div(tokens, config_.block_tokens);
}

Scheduler::Entries::iterator Scheduler::find_running(SequenceId sequence) {
  const auto found = std::ranges::lower_bound(running_, sequence, {}, id_of);
  SLUICE_CHECK(found != running_.end());
  SLUICE_CHECK(found->demand.sequence == sequence);
  return found;
}

void Scheduler::check_invariants() const {
  SLUICE_CHECK(running_count() <= config_.sequences_max);
  SLUICE_CHECK(waiting_count() <= config_.waiting_max + config_.sequences_max);
  std::int64_t blocks = 0;
  SequenceId last = -1;
  for (const Entry& running : running_) {
    SLUICE_CHECK(running.demand.sequence > last);
    SLUICE_CHECK(running.computed_tokens >= 0);
    SLUICE_CHECK(running.remaining_tokens() >= 0);
    SLUICE_CHECK(running.served_at <= served_);
    last = running.demand.sequence;
    blocks += blocks_of(running);
  }
  SLUICE_CHECK(blocks == reserved_blocks_);
  SLUICE_CHECK(std::ranges::is_sorted(
      waiting_, [](const Entry& a, const Entry& b) { return a.is_before(b); }));
}

}  // namespace sluice
