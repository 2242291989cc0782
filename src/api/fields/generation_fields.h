// The request fields every generating endpoint shares: model, streaming, length, sampling, stops.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "api/fields/constraint_fields.h"
#include "api/fields/json_fields.h"
#include "api/fields/request_limits.h"
#include "request/request.h"
#include "text/generation_config.h"

namespace sluice {

inline constexpr std::int64_t kStopTextsMax = 16;        // `stop`
inline constexpr std::int64_t kStopTextBytesMax = 4096;  // one of them
inline constexpr std::int64_t kStopTokensMax = 256;      // `stop_token_ids`
inline constexpr std::int64_t kTokensMaxMax = 1 << 30;   // `max_tokens`
inline constexpr std::int64_t kPriorityMax = 1 << 20;    // `priority`: -this to this
inline constexpr std::size_t kCacheSaltBytesMax = 1024;  // `cache_salt`
inline constexpr std::size_t kModelNameBytesMax = 256;   // `model`, echoed in every chunk
inline constexpr std::size_t kRequestIdBytesMax = 128;   // `request_id`, as in headers

// What the request said about the choice of tokens; absent values are the model's.
struct SamplingFields {
  std::optional<float> temperature;
  std::optional<std::int32_t> top_k;
  std::optional<float> top_p;
  std::optional<float> min_p;
  std::optional<float> presence_penalty;
  std::optional<float> frequency_penalty;
  std::optional<float> repetition_penalty;
  std::optional<std::uint64_t> seed;
  std::vector<std::pair<TokenId, float>> logit_bias;
};

struct GenerationFields {
  std::optional<std::string> model;
  bool stream = false;
  bool include_usage = false;              // in a stream
  bool continuous_usage = false;           // in every chunk of a stream
  std::int64_t choices = 1;                // `n`
  std::optional<std::int64_t> tokens_max;  // absent: the rest of the context
  SamplingFields sampling;
  std::int32_t logprobs = -1;  // as in SamplingParams
  ConstraintFields constraint;
  std::int64_t reasoning_tokens_max = -1;  // -1: no limit but tokens_max
  std::vector<std::string> stop;
  bool stop_everywhere = false;  // not in content only
  bool keep_stop_text = false;
  std::vector<TokenId> stop_token_ids;  // beyond the model's own
  bool ignore_eos = false;              // concerns the model's own only
  bool skip_special_tokens = true;
  bool return_token_ids = false;
  bool timings = false;
  std::optional<double> timeout_seconds;
  std::optional<std::string> request_id;  // instead of the header's, or ours
  std::int64_t priority = 0;              // lower goes first
  std::string cache_salt;                 // requests with different ones share no computed prefix
};

// Temperature, filters, penalties, seed and logit_bias.
SamplingFields read_sampling_fields(JsonFields& fields, const RequestLimits& limits);

// Takes what `fields` leaves out from `defaults`.
void complete_sampling(SamplingFields& fields, const SamplingFields& defaults);

// Reads all of GenerationFields but tokens_max and reasoning_tokens_max (their names differ) and
// refuses the fields no endpoint supports.
GenerationFields read_generation_fields(JsonFields& body, const RequestLimits& limits);

// `cache_salt`; empty when absent.
std::string read_cache_salt(JsonFields& body);

// A string or up to kStopTextsMax of them; empty ones are dropped.
std::vector<std::string> read_stop_texts(JsonFields& body, std::string_view key);

// Length limits: null, absent and -1 mean the rest of the context. The first key given wins.
std::optional<std::int64_t> read_tokens_max(JsonFields& body,
                                            std::initializer_list<std::string_view> keys);

// Token ids in [0, limits.vocab_size). Error at the first that is not.
std::vector<TokenId> read_token_ids(const boost::json::array& values, const std::string& path,
                                    const RequestLimits& limits, FieldReport& report);

// Values left out come one by one from the model. Without a seed, `seed` is the one drawn for it.
SamplingParams resolve_sampling(const SamplingFields& fields, const GenerationConfig& model,
                                std::uint64_t seed);

// For requests that name no seed.
std::uint64_t random_seed();

// The model's own stop ids unless ignored, and those of the request.
StopCriteria resolve_stop(const GenerationFields& fields, const GenerationConfig& model,
                          std::int64_t tokens_max);

}  // namespace sluice
