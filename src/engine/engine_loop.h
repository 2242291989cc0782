// One step of the world: drop the cancelled, plan, batch, forward, sample, commit. No threads of
// its own, so tests and simulations call step() directly; engine.cpp runs it on the engine thread.
//
// Events are collected during a step and handed to the readers by deliver(), after the engine's
// status was published: who sees a request finished also sees its place free.
//
// Thread rule: one owner (the engine thread). Everything large is reserved at create(); a step
// allocates only the top log-probabilities of a token event, the nodes of the prefix tree and what
// constraints need.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "cache/hybrid_cache.h"
#include "engine/batch_builder.h"
#include "engine/engine.h"
#include "engine/engine_recorder.h"
#include "engine/picture_encoder.h"
#include "engine/pin_board.h"
#include "engine/prefill_pace.h"
#include "engine/sequence.h"
#include "engine/token_chooser.h"
#include "platform/aligned_buffer.h"
#include "scheduler/scheduler.h"

namespace sluice {

class EngineLoop {
 public:
  // The model and the clock must outlive the loop. Errors: see plan_memory(); resource_exhausted
  // when the operating system refuses the memory.
  static Result<std::unique_ptr<EngineLoop>> create(Qwen3_5& model, const EngineConfig& config,
                                                    const Clock& clock);
  ~EngineLoop();
  EngineLoop(const EngineLoop&) = delete;
  EngineLoop& operator=(const EngineLoop&) = delete;

  // ids ascend. At most sequences_max + queue_max sequences at a time.
  void add(std::unique_ptr<Sequence> sequence);

  void step();        // at most one forward pass
  void cancel_all();  // ends every sequence with FinishReason::cancelled
  CacheFlushed flush_cache(const CacheFlush& what);
  std::vector<PinnedPrefix> list_pins();
  bool unpin(std::string_view id);
  Result<CacheTransfer> save_cache(const CacheFile& file);
  Result<CacheTransfer> load_cache(const CacheFile& file);
  // When step() is due though nothing runs.
  std::optional<Clock::TimePoint> next_pin_end() const { return pins_.next_end(); }
  void deliver();  // hands the collected events to their readers

  bool is_idle() const { return sequences_.empty(); }
  EngineStatus status() const;
  std::int64_t ended_count() const { return ended_count_; }  // since create()

  void check_invariants() const;

 private:
  struct Delivery {
    std::shared_ptr<EventQueue> events;
    StepEvents happened;
  };
  struct Memory {
    HybridCache cache;
    AlignedBuffer logits;  // [logit rows of a step, vocab_size] fp32
  };

  EngineLoop(Qwen3_5& model, const EngineConfig& config, const EngineMemory& plan,
             const Clock& clock, Memory memory);

  void drop_cancelled();
  void end_late();
  void look_up_pins();
  bool answer_pin(Sequence& sequence);
  void admit();
  void preempt(Sequence& sequence);
  void resume(Sequence& sequence);
  bool follow(Sequence& sequence);
  void end_following();
  void encode_pictures();
  std::int64_t prefill_beside_decode() const;
  void reserve_checkpoints(Sequence& sequence, const PlannedRows& rows);
  void forward(const StepPlan& plan, Clock::TimePoint began);
  void keep_results(const StepPlan& plan);
  void choose_tokens(const StepPlan& plan);
  bool score_prompt(Sequence& sequence, const PlannedRows& rows, std::int64_t logit_row);
  void finish_prefill(Sequence& sequence);
  void choose_token(Sequence& sequence, std::span<const float> logits);
  Delivery& delivery_of(const Sequence& sequence);
  // Gives back what the sequence holds and forgets it.
  void finish(Sequence& sequence, GenerationFinished finished);
  Sequence* find(SequenceId id);
  std::span<float> logits_of(std::int64_t row);

  Qwen3_5& model_;
  const EngineConfig config_;
  const Clock& clock_;
  Memory memory_;
  PinBoard pins_;  // of memory_.cache
  PictureEncoder pictures_;
  Scheduler scheduler_;
  PrefillPace prefill_pace_;
  BatchBuilder batch_builder_;
  TokenChooser token_chooser_;
  std::int64_t sampled_vocab_size_;
  double flops_per_token_;                            // of a prefill step, about
  std::int64_t kv_block_count_;                       // that running sequences may hold together
  std::vector<std::unique_ptr<Sequence>> sequences_;  // waiting and running, ascending id
  std::vector<Sequence*> planned_;                    // of the current plan, row by row
  std::vector<Sequence*> awaiting_;                   // scratch: those whose pictures are missing
  std::vector<Delivery> deliveries_;
  EngineRecorder recorder_;
  std::int64_t steps_ = 0;
  std::int64_t preemptions_ = 0;
  std::int64_t ended_count_ = 0;
};

}  // namespace sluice
