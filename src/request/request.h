// The shared nouns of one generation request. Plain data: parsed by api/, run by engine/.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "request/vision_input.h"

namespace sluice {

using TokenId = std::int32_t;

class ConstraintFactory;  // request/token_constraint.h

inline constexpr std::int32_t kLogprobsMax = 20;     // alternatives per token
inline constexpr std::int64_t kLogitBiasMax = 1024;  // entries of one request
inline constexpr float kTemperatureMax = 2.0F;
inline constexpr float kPenaltyMax =
    2.0F;  // presence, frequency: -this to this; repetition: (0, this]

// How the next token is chosen. Defaults mean "off". Ranges are checked by validate().
struct SamplingParams {
  float temperature = 0.0F;         // [0, 2]; 0 is greedy, the lowest id wins ties
  std::int32_t top_k = 0;           // >= 0; 0 is off
  float top_p = 1.0F;               // [0, 1]; 0 is greedy
  float min_p = 0.0F;               // [0, 1]
  float presence_penalty = 0.0F;    // [-2, 2], generated tokens only
  float frequency_penalty = 0.0F;   // [-2, 2], generated tokens only
  float repetition_penalty = 1.0F;  // (0, 2], prompt and generated tokens
  std::uint64_t seed = 0;           // randomness is a function of (seed, position)
  std::int32_t logprobs = -1;       // -1 none; n >= 0: of the chosen token and of the n best
  std::vector<std::pair<TokenId, float>> logit_bias;  // added to the logit
};

// When a sequence ends. Texts that end it are not here: whoever turns tokens into text looks for
// them and cancels the stream.
struct StopCriteria {
  std::int64_t tokens_max = 0;          // generated tokens at most; >= 0
  std::vector<TokenId> stop_token_ids;  // ends the sequence; the token itself is not text
  bool ignore_eos = false;              // then stop_token_ids are ordinary tokens
};

inline constexpr double kPinSecondsMax = 1e9;

// Asks that a prompt and the state after it stay stored, whatever else needs the memory.
struct PinLabel {
  std::string id = {};                           // names the pin
  std::string name = {};                         // for people
  std::optional<double> seconds = std::nullopt;  // (0, kPinSecondsMax] once made; none: no end
};

struct Request {
  std::string id;
  std::vector<TokenId> token_ids;  // the prompt, at least one
  std::vector<VisionSpan> vision;  // pictures in it, ascending, at their placeholders
  SamplingParams sampling;
  StopCriteria stop;
  std::int64_t priority = 0;  // lower goes first, and may take the place of others
  std::string cache_salt;     // only requests with the same salt share computed prefixes
  // Prompt positions, ascending, up to which a later prompt is likely to be the same: where the
  // messages of a conversation begin. Hints for what is worth keeping; they change no result.
  std::vector<std::int64_t> stable_positions;
  // Which tokens may be chosen; null: all. Copies of a request share it, each sequence starts its
  // own constraint from it.
  std::shared_ptr<const ConstraintFactory> constraint;
  // Scores of the prompt: -1 none; n >= 0: the logprob of each of its tokens and of the n best.
  // Then all of the prompt is computed, whatever of it is stored.
  std::int32_t prompt_logprobs = -1;
  std::optional<PinLabel> pin;  // then the prompt is whole blocks and tokens_max is 0
  bool counted = true;          // false: left out of all metrics (a test of the server itself)
  // When the answer must be complete; else it ends with an error `deadline`, waiting or running.
  std::optional<Clock::TimePoint> deadline = {};
};

enum class FinishReason { stop, length, cancelled, error };

std::string to_string(FinishReason reason);

struct TokenLogprob {
  TokenId token_id = 0;
  float logprob = 0.0F;  // natural log of softmax of the raw logits
};

// One token of a sequence: generated, or of a prompt that is scored (the first has no logprob).
struct TokenEvent {
  TokenId token_id = 0;
  std::optional<float> logprob = {};
  std::vector<TokenLogprob> top_logprobs = {};  // best first; ties by lower id
};

struct Usage {
  std::int64_t prompt_tokens = 0;
  std::int64_t cached_tokens = 0;      // of the prompt, not computed again
  std::int64_t completion_tokens = 0;  // TokenEvents: a stop token is not counted
};

struct Timings {
  double queue_seconds = 0.0;    // submitted to admitted
  double prefill_seconds = 0.0;  // admitted to first token chosen
  double decode_seconds = 0.0;   // first token to the end
};

}  // namespace sluice
