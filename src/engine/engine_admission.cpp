// EngineLoop: who joins and who leaves, and what of a prompt need not be computed: it is stored, or
// another sequence is computing it, or its pictures are being encoded first.
#include <algorithm>
#include <utility>

#include "engine/engine_loop.h"
#include "engine/reuse_report.h"

namespace sluice {
namespace {

std::int64_t whole_blocks(std::int64_t tokens) {
  return tokens / kKvBlockTokens * kKvBlockTokens;
}

// One more prefix of the prompt whose state is worth keeping.
void keep_at(Sequence& sequence, std::int64_t tokens) {
  const auto place = std::ranges::lower_bound(sequence.keep_at, tokens);
  if (place == sequence.keep_at.end() || *place != tokens) {
    sequence.keep_at.insert(place, tokens);
  }
}

}  // namespace

void EngineLoop::admit() {
  const Scheduler::Admission& admission = scheduler_.admit();
  for (const SequenceId id : admission.preempted) {
    preempt(*find(id));
  }
  for (const SequenceId id : admission.admitted) {
    Sequence& sequence = *find(id);
    if (!sequence.admitted_at) {
      sequence.admitted_at = clock_.now();
    }
    sequence.running = true;
    memory_.cache.open(sequence.cache, sequence.cache_salt);
    if (!follow(sequence)) {
      resume(sequence);
    }
  }
}

// What was computed of it stays known as long as the cache has room.
void EngineLoop::preempt(Sequence& sequence) {
  memory_.cache.close(sequence.cache);
  sequence.running = false;
  sequence.computed_tokens = 0;
  sequence.answer_checkpoint.reset();
  sequence.leader.reset();
  sequence.awaits_pictures = false;
  for (SequencePicture& picture : sequence.pictures) {
    picture.rows.reset();
  }
  sequence.awaited_at.clear();
  sequence.prompt_scores.clear();
  ++preemptions_;
}

void EngineLoop::resume(Sequence& sequence) {
  const auto wanted = sequence.resumable();
  const PrefixReuse reuse = memory_.cache.resume(sequence.cache, wanted);
  sequence.computed_tokens = reuse.tokens;
  scheduler_.set_computed(sequence.id, reuse.tokens);
  sequence.awaits_pictures = !pictures_.gather(sequence);
  scheduler_.hold(sequence.id, sequence.awaits_pictures);
  if (sequence.reuse) {
    return;  // back from a preemption
  }
  sequence.reuse =
      explain_reuse(reuse, {.wanted_tokens = std::ssize(wanted),
                            .is_scored = sequence.needs_scores(),
                            .keeps_prefixes = config_.reuse_bytes > 0,
                            .stores_anything = memory_.cache.use().shared_block_count > 0});
  recorder_.looked_up(sequence);
  if (!sequence.pin) {
    pins_.count_hits(sequence.cache, clock_.now());
  }
  delivery_of(sequence).happened.admitted = GenerationAdmitted{.cached_tokens = reuse.tokens};
  if (reuse.kv_tokens > reuse.tokens) {  // two prompts leave each other here: a third may, too
    keep_at(sequence, reuse.kv_tokens);
  }
}

// When a running sequence is about to compute the beginning of this prompt, lets this one wait for
// it instead of computing the same.
bool EngineLoop::follow(Sequence& sequence) {
  if (config_.reuse_bytes == 0 || sequence.needs_scores()) {
    return false;
  }
  const auto wanted = sequence.resumable();
  const std::int64_t most = whole_blocks(std::ssize(wanted));
  Sequence* leader = nullptr;
  std::int64_t leader_tokens = 0;
  for (const auto& other : sequences_) {
    if (other->id >= sequence.id || leader_tokens == most) {
      break;
    }
    if (!other->running || other->priority > sequence.priority ||
        other->computed_tokens >= other->prompt_tokens ||
        other->cache_salt != sequence.cache_salt) {
      continue;
    }
    const auto parting = std::ranges::mismatch(wanted, other->prompt());
    const std::int64_t shared = whole_blocks(parting.in1 - wanted.begin());
    if (shared > other->computed_tokens && shared > leader_tokens) {
      leader = other.get();
      leader_tokens = shared;
    }
  }
  if (leader == nullptr || leader_tokens <= memory_.cache.known_tokens(sequence.cache, wanted)) {
    return false;
  }
  sequence.leader = leader->id;
  sequence.leader_tokens = leader_tokens;
  leader->awaited_at.push_back(leader_tokens);
  keep_at(*leader, leader_tokens);
  scheduler_.hold(sequence.id, true);
  return true;
}

// A leader that is gone leaves its followers to another one.
void EngineLoop::end_following() {
  for (const auto& sequence : sequences_) {
    if (!sequence->leader) {
      continue;
    }
    const Sequence* leader = find(*sequence->leader);
    if (leader != nullptr && !leader->running) {
      leader = nullptr;  // preempted: it may be long until it goes on
    }
    if (leader != nullptr && leader->computed_tokens < sequence->leader_tokens) {
      continue;
    }
    sequence->leader.reset();
    if (leader == nullptr && follow(*sequence)) {
      continue;
    }
    resume(*sequence);
  }
}

// A step has a budget of its own for pictures: beside decoding sequences as much as the prompt
// tokens that they wait for, else as much as a step of prefill.
void EngineLoop::encode_pictures() {
  awaiting_.clear();
  bool anybody_decodes = false;
  for (const auto& sequence : sequences_) {
    if (sequence->awaits_pictures) {
      awaiting_.insert(
          std::ranges::upper_bound(awaiting_, sequence->priority, {}, &Sequence::priority),
          sequence.get());
    }
    anybody_decodes |= sequence->running && sequence->prefilled_at.has_value();
  }
  const std::int64_t tokens = anybody_decodes ? prefill_beside_decode() : config_.prefill_step_max;
  const auto finished =
      pictures_.advance(awaiting_, flops_per_token_ * static_cast<double>(tokens));
  if (!finished) {
    finish(*awaiting_.front(), {.reason = FinishReason::error, .error = finished.error()});
    return;
  }
  if (!*finished) {
    return;
  }
  for (Sequence* sequence : awaiting_) {
    sequence->awaits_pictures = !pictures_.gather(*sequence);
    scheduler_.hold(sequence->id, sequence->awaits_pictures);
  }
}

std::int64_t EngineLoop::prefill_beside_decode() const {
  return config_.prefill_beside_decode_max > 0 ? config_.prefill_beside_decode_max
                                               : prefill_pace_.rows();
}

}  // namespace sluice
