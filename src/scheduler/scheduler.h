// Who computes what in the next step. Pure policy: no threads, no clock, no I/O, no memory but its
// own lists; the same calls give the same plans.
//
//   enqueue -> waiting --admit()--> running --remove()--> gone
//                 ^--- admit(): preempted ---'
//
// Each step: admit(), set_computed() and hold() for what is known of the sequences, plan(), and
// commit() once the rows are computed.
//
// Order: lower priority numbers first, then first come, first served. The head of the queue is
// never overtaken: when it does not fit, everybody behind it waits.
// Memory: a running sequence holds the blocks of the tokens it knows, not of its longest answer. A
// sequence joins when its blocks fit with one more for each that can still grow. When what runs has
// outgrown the memory, or a sequence of a better priority needs the place, the last in order is
// preempted: it gives everything back, waits at its old place in the order, and computes what it
// knew once more (or finds it in the cache) when it joins again. The first in order is never
// preempted, so it ends, and so does everybody in turn.
// Rows: sequences with one token left to compute (decoding) come first; the rest of the step goes
// to prefill, up to half of it to the first in order and then to those with the fewest tokens left,
// so that a short prompt does not wait for the end of a long one. When a step has too few rows for
// all, the one that was served longest ago comes first, and the first prefill takes its turn with
// one row. When logit rows run out, a prefill stops one token short of its end and then takes turns
// like the others. A prompt that is scored has logits of every row, and a budget of its own for
// them. A held sequence keeps its place but gets no rows: it waits for another one, or for
// pictures.
//
// Thread rule: one owner (the engine thread).
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "scheduler/step_plan.h"

namespace sluice {

struct SchedulerConfig {
  std::int64_t sequences_max = 1;        // running at once
  std::int64_t waiting_max = 0;          // enqueue() beyond it is a bug of the caller
  std::int64_t step_tokens_max = 1;      // rows of one step
  std::int64_t step_logit_rows_max = 1;  // logit rows of one step, for next tokens
  std::int64_t step_score_rows_max = 0;  // further ones, for scores of prompts
  std::int64_t prefill_step_max = 1;     // prefill rows of one step, over all sequences
  std::int64_t block_tokens = 64;        // tokens of one KV block
  std::int64_t block_count = 0;          // KV blocks there are
};

// What the scheduler needs to know of a new sequence. Its worst case fits into block_count.
struct SequenceDemand {
  SequenceId sequence = 0;         // higher than all before
  std::int64_t priority = 0;       // lower comes first
  std::int64_t prompt_tokens = 0;  // >= 1
  std::int64_t tokens_max = 0;     // generated tokens at most; 0: no next token is needed
  bool is_scored = false;          // the prompt; only with step_score_rows_max > 0
};

class Scheduler {
 public:
  explicit Scheduler(const SchedulerConfig& config);

  void enqueue(const SequenceDemand& demand);

  struct Admission {
    std::vector<SequenceId> preempted;  // must give back what they hold
    std::vector<SequenceId> admitted;   // need a state slot before the step; none of the preempted
  };
  // Who leaves and who joins now. Valid until the next call.
  const Admission& admit();

  // Before its first rows: the first `tokens` it knows need not be computed. Less than all.
  void set_computed(SequenceId sequence, std::int64_t tokens);
  // The sequence gets no rows while held.
  void hold(SequenceId sequence, bool held);

  // Prefill rows of steps that have decoding sequences, from now on; 0: none. prefill_step_max
  // until the first call, and never more.
  void set_prefill_beside_decode(std::int64_t rows_max);

  // Valid until the next call. It has rows whenever anything runs that is not held.
  const StepPlan& plan();

  // The planned rows were computed. Every sequence without a token left to compute must now get
  // append_token() or remove().
  void commit();
  void append_token(SequenceId sequence);
  void remove(SequenceId sequence);  // finished or cancelled, waiting or running

  std::int64_t running_count() const { return static_cast<std::int64_t>(running_.size()); }
  std::int64_t waiting_count() const { return static_cast<std::int64_t>(waiting_.size()); }
  std::int64_t reserved_block_count() const { return reserved_blocks_; }

  void check_invariants() const;

 private:
  struct Entry {
    SequenceDemand demand;
    std::int64_t known_tokens = 0;     // prompt and generated
    std::int64_t computed_tokens = 0;  // in cache and state
    std::int64_t served_at = 0;        // value of served_ when it last got rows or was admitted
    bool held = false;

    std::int64_t remaining_tokens() const { return known_tokens - computed_tokens; }
    // Whether rows to come tell of the prompt. The last token is all the same to it.
    bool needs_scores() const { return demand.is_scored && remaining_tokens() > 1; }
    bool is_before(const Entry& other) const {
      return std::pair(demand.priority, demand.sequence) <
             std::pair(other.demand.priority, other.demand.sequence);
    }
  };
  using Entries = std::vector<Entry>;

  std::int64_t blocks_of(std::int64_t tokens) const;
  std::int64_t blocks_of(const Entry& entry) const { return blocks_of(entry.known_tokens); }
  bool can_grow(const Entry& entry) const;
  bool fits(const Entry& entry) const;
  bool fits_after_preemption(const Entry& entry) const;
  template <class Stays>
  bool fits_beside(const Entry& entry, Stays stays) const;
  void wait(const Entry& entry);
  Entries::iterator find_running(SequenceId sequence);
  Entries::iterator last_in_order();
  void preempt(Entries::iterator running);
  void plan_decode();
  void plan_prefill();
  bool can_end(const Entry& running) const;
  void plan_rows(const Entry& running, std::int64_t token_count);

  SchedulerConfig config_;
  std::int64_t prefill_beside_decode_max_;
  Entries waiting_;                   // in order
  Entries running_;                   // ascending id
  std::vector<std::size_t> turns_;    // scratch: indices into running_
  std::vector<std::int64_t> shares_;  // scratch: prefill rows by index into running_
  std::int64_t reserved_blocks_ = 0;
  std::int64_t score_rows_ = 0;  // of the plan
  std::int64_t served_ = 0;      // counts sequences served, over all steps
  SequenceId last_sequence_ = -1;
  Admission admission_;
  StepPlan plan_;
};

}  // namespace sluice
