// What the engine counts since its start, and how it stands. Plain data of fixed size, published
// together, so that whoever reads it has one moment of the engine.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "base/histogram.h"
#include "request/prompt_reuse.h"

namespace sluice {

inline constexpr std::array kSecondsBounds{0.001, 0.005, 0.01, 0.02,  0.04,  0.06,  0.08, 0.1,
                                           0.25,  0.5,   0.75, 1.0,   2.5,   5.0,   7.5,  10.0,
                                           20.0,  40.0,  80.0, 160.0, 640.0, 2560.0};
inline constexpr std::array kTokenCountBounds{1.0,   2.0,   5.0,   10.0,   20.0,   50.0,
                                              100.0, 200.0, 500.0, 1000.0, 2000.0, 5000.0,
                                              1e4,   2e4,   5e4,   1e5,    2e5,    5e5};

// Look-ups of prompts among what is stored, by why they ended where they did.
struct PromptLookups {
  std::int64_t hits = 0;  // something was reused
  std::int64_t misses = 0;
};

struct EngineMetrics {
  std::int64_t prefilled_tokens = 0;  // of prompts, computed
  std::int64_t decoded_tokens = 0;    // of answers, computed
  std::int64_t wanted_tokens = 0;     // of prompts, looked up: all but the last one of each
  std::int64_t reused_tokens = 0;     // of those, not computed again
  std::array<PromptLookups, kReuseLimits.size()> lookups = {};  // in the order of kReuseLimits

  std::int64_t flushed_blocks = 0;  // of kept prefixes, by flush_cache()
  std::int64_t flushed_checkpoints = 0;
  std::int64_t saved_tokens = 0;   // of kept prefixes, to files
  std::int64_t loaded_tokens = 0;  // and from them

  Histogram step_seconds{kSecondsBounds};
  Histogram step_tokens{kTokenCountBounds};

  // Per sequence. A sequence that ended before a phase is not in the histogram of that phase.
  Histogram queue_seconds{kSecondsBounds};        // submitted to admitted
  Histogram prefill_seconds{kSecondsBounds};      // admitted to first token chosen
  Histogram decode_seconds{kSecondsBounds};       // first token to the end
  Histogram inference_seconds{kSecondsBounds};    // admitted to the end
  Histogram end_to_end_seconds{kSecondsBounds};   // submitted to the end
  Histogram first_token_seconds{kSecondsBounds};  // submitted to first token chosen
  Histogram between_tokens_seconds{kSecondsBounds};
  Histogram per_token_seconds{kSecondsBounds};  // mean of a sequence, after its first token
  Histogram prompt_tokens{kTokenCountBounds};
  Histogram answer_tokens{kTokenCountBounds};
};

// How the engine stands between two steps.
struct EngineStatus {
  std::int64_t running = 0;
  std::int64_t waiting = 0;
  std::int64_t steps = 0;              // forward passes since start
  std::int64_t kv_blocks_used = 0;     // by running sequences and kept prefixes
  std::int64_t kv_blocks_running = 0;  // of running sequences, one that two use counted twice
  std::int64_t kv_blocks_max = 0;      // that these can be
  std::int64_t kept_blocks = 0;        // of kept prefixes; running ones may use them too
  std::int64_t kept_tokens = 0;
  std::int64_t kept_checkpoints = 0;  // states of kept prefixes
  std::size_t kv_bytes = 0;           // of blocks in use
  std::size_t kept_bytes = 0;         // of kept blocks and states
  std::size_t cache_bytes = 0;        // of all of these and of the states of running sequences
  std::size_t cache_bytes_max = 0;
  std::int64_t pinned_prefixes = 0;
  std::size_t pinned_bytes = 0;          // what several pins share counted once
  std::size_t picture_bytes = 0;         // of kept rows of encoded pictures
  std::size_t picture_bytes_in_all = 0;  // and of those that prompts hold
  std::int64_t pictures_encoded = 0;     // since start, like all below
  std::int64_t pictures_reused = 0;      // rows that a prompt needed and that were kept
  std::int64_t evicted_blocks = 0;       // for lack of memory
  std::int64_t evicted_checkpoints = 0;
  std::int64_t preemptions = 0;
  EngineMetrics metrics = {};
};

}  // namespace sluice
