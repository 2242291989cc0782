// The measurements of `sluice bench`: prefill and decode of a model, each between two samples of
// the machine's ceilings. Goes to the model directly, as the engine's thread does: forward() and
// the sampler, without queue and scheduler (some microseconds a step).
//
// Thread rule: one owner, who owns model and pool.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>

#include "apps/bench_report.h"
#include "base/clock.h"
#include "base/result.h"
#include "model/qwen3_5.h"
#include "ops/ceiling.h"
#include "platform/thread_pool.h"

namespace sluice::apps {

// Called with (units done, units in all): tokens of prefill, steps of decode.
using BenchProgress = std::function<void(std::int64_t, std::int64_t)>;

class BenchRunner {
 public:
  struct Options {
    double seconds = 5.0;         // of one case, about; every case has at least one run
    std::int64_t runs_max = 5;    // of a prefill
    std::int64_t steps_max = 64;  // of a decode
  };
  BenchRunner(Qwen3_5& model, ops::CeilingProbe& probe, ThreadPool& pool, const Clock& clock,
              const Options& options);

  // Tokens that a decode adds to its context, at most.
  static std::int64_t steps_of(const Options& options);

  // Bytes that a case takes beside the model: KV blocks, states, logits.
  std::size_t prefill_bytes(std::int64_t tokens) const;
  std::size_t decode_bytes(const DecodeShape& shape) const;

  // Whole prompts of `tokens` random tokens, each from nothing, in steps as large as the model's
  // options allow; logits and a sampled token at the end. Errors: no memory, a logit that is no
  // number.
  Result<BenchRuns> prefill(std::int64_t tokens, const BenchProgress& progress);

  // Steps that add a sampled token to each of shape.batch sequences. The context is not computed:
  // keys and values before its last few tokens are random numbers, which take the same time to
  // read. The context grows by a token a step. Errors as above.
  Result<BenchRuns> decode(const DecodeShape& shape, const BenchProgress& progress);

 private:
  Qwen3_5& model_;
  ops::CeilingProbe& probe_;
  ThreadPool& pool_;
  const Clock& clock_;
  Options options_;
};

}  // namespace sluice::apps
