// The engine: one thread that steps all sequences together: plan, batch, forward, sample, commit.
// The only public header of engine/.
//
// Thread rule: submit() and GenerationStream may be used from any thread.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "base/result.h"
#include "model/qwen3_5.h"
#include "request/request.h"

namespace sluice {

struct EngineConfig {
  std::int64_t context_max = 4096;      // tokens of one sequence, prompt and answer
  std::int64_t sequences_max = 4;       // running at once
  std::int64_t queue_max = 64;          // waiting beyond those; a full queue is an Error
  std::int64_t prefill_step_max = 512;  // prompt tokens of one step, over all sequences
  std::int64_t sampled_vocab_size = 0;  // ids that may be sampled: [0, this)
};

struct GenerationFinished {
  FinishReason reason = FinishReason::stop;
  std::optional<TokenId> stop_token_id;  // when reason is stop
  std::optional<Error> error;            // when reason is error
  Usage usage;
  Timings timings;
};

using GenerationEvent = std::variant<TokenEvent, GenerationFinished>;

// The answer of one request as it grows. Dropping the last reference cancels the request.
class GenerationStream {
 public:
  virtual ~GenerationStream() = default;

  // The next event if one is ready. After GenerationFinished there are none.
  virtual std::optional<GenerationEvent> try_next() = 0;

  // Waits for the next event. Must not be called after GenerationFinished was returned.
  virtual GenerationEvent next() = 0;

  // Takes effect within one step; a GenerationFinished{cancelled} follows.
  virtual void cancel() = 0;
};

struct EngineStatus {
  std::int64_t running = 0;
  std::int64_t waiting = 0;
  std::int64_t steps = 0;  // forward passes since start
  std::int64_t kv_blocks_total = 0;
  std::int64_t kv_blocks_used = 0;
};

class Engine {
 public:
  // Reserves all memory, starts the engine thread. The model must outlive the engine.
  static Result<std::unique_ptr<Engine>> start(Qwen3_5& model, const EngineConfig& config);

  virtual ~Engine() = default;  // cancels everything, joins the thread

  // Never blocks. on_ready (may be empty) is called from the engine thread whenever new events are
  // ready: it must only wake the reader. Errors: invalid_argument (empty prompt, id out of range,
  // sampling range; prompt too long: code resource_exhausted), resource_exhausted (queue full).
  virtual Result<std::shared_ptr<GenerationStream>> submit(Request request,
                                                           std::function<void()> on_ready) = 0;

  virtual EngineStatus status() const = 0;
  virtual const EngineConfig& config() const = 0;
};

}  // namespace sluice
