// Who computes what in the next step. Pure policy: no threads, no clock, no I/O, no memory but its
// own lists; the same calls give the same plans.
//
//   enqueue -> waiting --admit()--> running --remove()--> gone
//
// Each step: admit(), set_computed() and hold() for what is known of the sequences, plan(), and
// commit() once the rows are computed.
//
// Admission: first come, first served; a sequence is admitted when fewer than sequences_max run and
// the blocks of its whole worst case (prompt and tokens_max) are unreserved, so an admitted request
// never fails for lack of memory. A large request at the head waits and holds those behind it.
// Rows: sequences with one token left to compute (decoding) come first; the rest of the step goes
// to prefill, first come, first served. When a step has too few rows for all, the one that was
// served longest ago comes first, and the first prefill takes its turn with one row. When logit
// rows run out, a prefill stops one token short of its end and then takes turns like the others. So
// nobody starves: turns rotate, running sequences end, and the head of the queue is next. A held
// sequence keeps its place but gets no rows: it waits for one admitted before it.
//
// Thread rule: one owner (the engine thread).
#pragma once

#include <cstdint>
#include <vector>

#include "scheduler/step_plan.h"

namespace sluice {

struct SchedulerConfig {
  std::int64_t sequences_max = 1;        // running at once
  std::int64_t waiting_max = 0;          // enqueue() beyond it is a bug of the caller
  std::int64_t step_tokens_max = 1;      // rows of one step
  std::int64_t step_logit_rows_max = 1;  // logit rows of one step
  std::int64_t prefill_step_max = 1;     // prefill rows of one step, over all sequences
  std::int64_t block_tokens = 64;        // tokens of one KV block
  std::int64_t block_count = 0;          // KV blocks there are
};

// What the scheduler needs to know of a new sequence. Its worst case fits into block_count.
struct SequenceDemand {
  SequenceId sequence = 0;         // higher than all before
  std::int64_t prompt_tokens = 0;  // >= 1
  std::int64_t tokens_max = 0;     // generated tokens at most; 0: no logits are needed at all
};

class Scheduler {
 public:
  explicit Scheduler(const SchedulerConfig& config);

  void enqueue(const SequenceDemand& demand);

  // The sequences that join now, ascending. They need a state slot before the step. Valid until the
  // next call.
  const std::vector<SequenceId>& admit();

  // Before its first rows: the first `tokens` of the prompt need not be computed. Less than all.
  void set_computed(SequenceId sequence, std::int64_t tokens);
  // The sequence gets no rows while held. At least one running sequence is not.
  void hold(SequenceId sequence, bool held);

  // Valid until the next call. It has rows whenever anything runs.
  const StepPlan& plan();

  // The planned rows were computed. Every sequence with wants_logits must now get append_token() or
  // remove(); one whose prompt is done and that wants no logits must get remove().
  void commit();
  void append_token(SequenceId sequence);
  void remove(SequenceId sequence);  // finished or cancelled, waiting or running

  std::int64_t running_count() const { return static_cast<std::int64_t>(running_.size()); }
  std::int64_t waiting_count() const { return static_cast<std::int64_t>(waiting_.size()); }
  std::int64_t reserved_block_count() const { return reserved_blocks_; }

  void check_invariants() const;

 private:
  struct Running {
    SequenceDemand demand;
    std::int64_t known_tokens = 0;     // prompt and generated
    std::int64_t computed_tokens = 0;  // in cache and state
    std::int64_t served_at = 0;        // value of served_ when it last got rows or was admitted
    bool held = false;

    std::int64_t remaining_tokens() const { return known_tokens - computed_tokens; }
  };

  std::int64_t blocks_of(const SequenceDemand& demand) const;
  std::vector<Running>::iterator find_running(SequenceId sequence);
  void plan_decode();
  void plan_prefill();
  bool can_end(const Running& running) const;
  void plan_rows(const Running& running, std::int64_t token_count);

  SchedulerConfig config_;
  std::vector<SequenceDemand> waiting_;  // first come first
  std::vector<Running> running_;         // ascending id = order of admission
  std::vector<std::size_t> turns_;       // scratch: indices into running_
  std::int64_t reserved_blocks_ = 0;
  std::int64_t served_ = 0;  // counts sequences served, over all steps
  std::vector<SequenceId> admitted_;
  StepPlan plan_;
};

}  // namespace sluice
