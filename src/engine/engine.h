// The engine: one thread that steps all sequences together: plan, batch, forward, sample, commit.
// The only public header of engine/.
//
// Thread rule: submit() and GenerationStream may be used from any thread.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "cache/cache_file_index.h"
#include "engine/engine_metrics.h"
#include "model/qwen3_5.h"
#include "request/prompt_reuse.h"
#include "request/request.h"

namespace sluice {

struct EngineConfig {
  std::int64_t context_max = 4096;      // tokens of one sequence, prompt and answer
  std::int64_t sequences_max = 4;       // running at once
  std::int64_t queue_max = 64;          // waiting for those to end; a full queue is an Error
  std::int64_t prefill_step_max = 512;  // prompt tokens of one step, over all sequences
  // The same while others wait for their next token: what they wait in addition. 0: measured, so
  // that they wait at most PrefillPace::kStretchMax (2.5) times as long as without.
  std::int64_t prefill_beside_decode_max = 0;
  // Prompt tokens of one step that can be scored (Request::prompt_logprobs), over all sequences;
  // each takes memory for a row of logits. 0: none, such requests are refused.
  std::int64_t score_step_max = 0;
  std::int64_t sampled_vocab_size = 0;  // ids that may be sampled: [0, this); 0: all of the model
  // KV memory, over all that run; 0: sequences_max contexts. With less, sequences that outgrow it
  // together are preempted: the last in order goes on later, with the same answer.
  std::int64_t kv_tokens_max = 0;
  // Memory for computed prefixes that are kept for later requests, beyond what runs; 0: none is.
  std::size_t reuse_bytes = 0;
  // Memory for the rows of encoded pictures that are kept for later requests.
  std::size_t picture_bytes = 0;
};

// What the engine reserves at start, for the start-up table. Pages become resident when first used.
struct EngineMemory {
  std::int64_t kv_block_count = 0;
  std::size_t kv_bytes = 0;      // blocks of 64 tokens
  std::size_t state_bytes = 0;   // one slot per running sequence
  std::size_t reuse_bytes = 0;   // blocks and states of kept prefixes
  std::size_t logits_bytes = 0;  // logit rows of one step
  // Rows of encoded pictures, kept or waited for: picture_bytes, but at least a context of them.
  std::size_t picture_bytes = 0;
};

// Checks every field of the config and adds up the memory. Errors: invalid_argument (field, value,
// limits), resource_exhausted (the bytes overflow).
Result<EngineMemory> plan_memory(const EngineConfig& config, const CacheLayout& layout,
                                 const ModelOptions& options, std::int64_t vocab_size);

// The first event of a request that was not refused or cancelled before its turn.
struct GenerationAdmitted {
  std::int64_t cached_tokens = 0;  // of the prompt, not computed again
};

// Where Request::prompt_logprobs asks for it: once, before the first token. One entry for each
// token of the prompt; the first has no logprob, as nothing precedes it.
struct PromptScored {
  std::vector<TokenEvent> tokens;
};

// A prefix that stays stored until its end or until somebody unpins it. At most half of
// EngineConfig::reuse_bytes can be pinned.
struct PinnedPrefix {
  std::string id;
  std::string name;
  std::int64_t tokens = 0;
  std::size_t bytes = 0;  // also of what it shares with others
  std::int64_t hits = 0;  // requests that went on from it or from below
  std::optional<Clock::TimePoint> last_hit_at = std::nullopt;
  std::optional<Clock::TimePoint> ends_at = std::nullopt;
};

// What became of Request::pin. A prefix that was pinned before keeps its id and takes the new name
// and end.
struct PromptPinned {
  PinnedPrefix prefix;
  bool is_new = true;
};

struct GenerationFinished {
  FinishReason reason = FinishReason::stop;
  std::optional<TokenId> stop_token_id = std::nullopt;  // when reason is stop
  std::optional<Error> error = std::nullopt;            // when reason is error
  Usage usage = {};
  Timings timings = {};
  std::optional<PromptReuse> reuse = std::nullopt;  // none when it never ran
  // Of a request to pin, unless it was cancelled or reason is error: resource_exhausted (the budget
  // for pins, or their number) says that it does not fit.
  std::optional<PromptPinned> pinned = std::nullopt;
};

using GenerationEvent =
    std::variant<GenerationAdmitted, PromptScored, TokenEvent, GenerationFinished>;

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

// What to forget of computed prefixes: all, or what is stored under these salts.
struct CacheFlush {
  std::optional<std::vector<std::string>> salts = std::nullopt;
  bool keep_pins = false;  // else pins end with what they pin
};

// What of it no running request needed.
struct CacheFlushed {
  std::int64_t tokens = 0;
  std::size_t bytes = 0;
};

// A file for kept prefixes, and what their bytes depend on beside their sizes: of another identity
// they are not taken.
struct CacheFile {
  std::filesystem::path path;
  CacheIdentity identity;
};

// What was saved, or what loading added.
struct CacheTransfer {
  std::int64_t tokens = 0;  // of blocks
  std::size_t bytes = 0;    // of blocks and states
  std::int64_t pins = 0;
  double seconds = 0.0;
};

class Engine {
 public:
  // Reserves all memory, starts the engine thread. The model must outlive the engine.
  static Result<std::unique_ptr<Engine>> start(Qwen3_5& model, const EngineConfig& config);

  virtual ~Engine() = default;  // cancels everything, joins the thread

  // Never waits for the model. on_ready (may be empty) is called from the engine thread whenever
  // new events are ready: it must only wake the reader, must not throw, and is never called after
  // the stream is dropped. A prompt that leaves less than tokens_max of the context is answered up
  // to the end of the context (FinishReason::length). A deadline that has passed ends it within one
  // step (FinishReason::error with the code `deadline`). Errors: invalid_argument (empty prompt, id
  // out of range, sampling range, a constraint that cannot start), resource_exhausted (prompt of
  // context_max tokens or more; queue full), unsupported (scores or pictures, where this engine has
  // none).
  virtual Result<std::shared_ptr<GenerationStream>> submit(Request request,
                                                           std::function<void()> on_ready) = 0;

  // Commands: done between two steps; running requests are untouched. on_done is called once, from
  // the engine thread, when the status shows it: it must only hand the outcome over, and must not
  // throw. Errors: resource_exhausted (too many commands wait), cancelled (the engine stops).
  virtual Result<void> flush_cache(CacheFlush what,
                                   std::function<void(const CacheFlushed&)> on_done) = 0;
  virtual Result<void> list_pins(std::function<void(const std::vector<PinnedPrefix>&)> on_done) = 0;
  // What was pinned stays stored, and may be given up from now on. False: there is no such pin.
  virtual Result<void> unpin(std::string id, std::function<void(const bool&)> on_done) = 0;

  // Kept prefixes of all salts and pins, to a file and back: see HybridCache::save() and load().
  // Running requests pause meanwhile (save: until the file is on disk). Errors of the outcome:
  // not_found; invalid_argument (the name belongs to something else than a file); unsupported
  // (another identity or format); corrupt_data; io; resource_exhausted (more than fits one file).
  virtual Result<void> save_cache(CacheFile file,
                                  std::function<void(const Result<CacheTransfer>&)> on_done) = 0;
  virtual Result<void> load_cache(CacheFile file,
                                  std::function<void(const Result<CacheTransfer>&)> on_done) = 0;

  virtual EngineStatus status() const = 0;
  virtual const EngineConfig& config() const = 0;
};

}  // namespace sluice
