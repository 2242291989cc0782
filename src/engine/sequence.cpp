#include "engine/sequence.h"

#include <algorithm>
#include <new>
#include <utility>

#include "base/checked_math.h"
#include "model/forward_batch.h"
#include "sampling/sampler.h"

namespace sluice {
namespace {

constexpr std::size_t kStopTokenIdsMax = 1024;

Result<void> check_ids(const std::string& field, std::span<const TokenId> ids,
                       std::int64_t vocab_size) {
  const auto bad = std::find_if(ids.begin(), ids.end(),
                                [vocab_size](TokenId id) { return id < 0 || id >= vocab_size; });
  if (bad == ids.end()) {
    return {};
  }
  const std::string where = field + "[" + std::to_string(bad - ids.begin()) + "]";
  return fail(ErrorCode::invalid_argument,
              where + ": token id " + std::to_string(*bad) + ", want 0 to " +
                  std::to_string(vocab_size - 1),
              where);
}

// `prompt_tokens`: of the prompt it comes with.
Result<void> check_pin(const PinLabel& pin, std::int64_t prompt_tokens, std::int64_t tokens_max) {
  if (tokens_max != 0 || prompt_tokens % kKvBlockTokens != 0) {
    return fail(ErrorCode::invalid_argument,
                "pin: " + std::to_string(prompt_tokens) + " prompt tokens and tokens_max " +
                    std::to_string(tokens_max) + ", want whole blocks of " +
                    std::to_string(kKvBlockTokens) + " and 0",
                "pin");
  }
  if (pin.seconds && !(*pin.seconds > 0.0 && *pin.seconds <= kPinSecondsMax)) {
    return fail(ErrorCode::invalid_argument,
                "pin.seconds: " + std::to_string(*pin.seconds) + ", want more than 0 to " +
                    std::to_string(kPinSecondsMax),
                "pin.seconds");
  }
  return {};
}

Result<void> check_vision(const Request& request, const SequenceLimits& limits) {
  if (request.vision.empty()) {
    return {};
  }
  if (limits.vision_patches_max == 0) {
    return fail(ErrorCode::unsupported, "this model has no vision encoder loaded", "vision");
  }
  if (request.prompt_logprobs >= 0) {
    return fail(ErrorCode::unsupported, "prompts with pictures cannot be scored",
                "prompt_logprobs");
  }
  std::int64_t end = 0;
  for (std::size_t i = 0; i < request.vision.size(); ++i) {
    const VisionSpan& span = request.vision[i];
    const std::string where = "vision[" + std::to_string(i) + "]";
    const std::int64_t tokens = span.input ? span.input->token_count() : 0;
    const std::int64_t room = std::ssize(request.token_ids) - span.position;
    // A pinned prompt may end inside its last picture, which is encoded as a whole.
    const bool fits =
        request.pin ? room > 0 && span.position + tokens <= limits.context_max : room >= tokens;
    if (tokens < 1 || span.position < end || !fits) {
      return fail(ErrorCode::invalid_argument,
                  where + ": " + std::to_string(tokens) + " tokens from position " +
                      std::to_string(span.position) + ", want at least 1, after position " +
                      std::to_string(end) + " and within the prompt of " +
                      std::to_string(request.token_ids.size()),
                  where);
    }
    if (const std::int64_t patches = span.input->grid_rows * span.input->grid_columns;
        patches > limits.vision_patches_max) {
      return fail(ErrorCode::invalid_argument,
                  where + ": a picture of " + std::to_string(patches) + " patches, want at most " +
                      std::to_string(limits.vision_patches_max),
                  where);
    }
    end = span.position + tokens;
  }
  return {};
}

Result<void> check_request(const Request& request, const SequenceLimits& limits) {
  if (request.token_ids.empty()) {
    return fail(ErrorCode::invalid_argument, "the prompt has no tokens, want at least 1",
                "token_ids");
  }
  const std::int64_t prompt_tokens = std::ssize(request.token_ids);
  if (prompt_tokens >= limits.context_max) {
    return fail(ErrorCode::resource_exhausted,
                "the prompt has " + std::to_string(prompt_tokens) + " tokens, the context holds " +
                    std::to_string(limits.context_max) + " and needs room for at least one more",
                "token_ids");
  }
  SLUICE_TRY(check_ids("token_ids", request.token_ids, limits.vocab_size));
  SLUICE_TRY(validate(request.sampling, limits.sampled_vocab_size));
  if (request.stop.tokens_max < 0) {
    return fail(ErrorCode::invalid_argument,
                "tokens_max: " + std::to_string(request.stop.tokens_max) + ", want 0 or more",
                "tokens_max");
  }
  if (request.stop.stop_token_ids.size() > kStopTokenIdsMax) {
    return fail(ErrorCode::invalid_argument,
                "stop_token_ids: " + std::to_string(request.stop.stop_token_ids.size()) +
                    " ids, want at most " + std::to_string(kStopTokenIdsMax),
                "stop_token_ids");
  }
  if (!std::ranges::is_sorted(request.stable_positions) ||
      (!request.stable_positions.empty() &&
       (request.stable_positions.front() < 0 ||
        request.stable_positions.back() > std::ssize(request.token_ids)))) {
    return fail(ErrorCode::invalid_argument,
                "stable_positions: want ascending positions in the prompt", "stable_positions");
  }
  if (request.prompt_logprobs < -1 || request.prompt_logprobs > kLogprobsMax) {
    return fail(ErrorCode::invalid_argument,
                "prompt_logprobs: " + std::to_string(request.prompt_logprobs) + ", want -1 to " +
                    std::to_string(kLogprobsMax),
                "prompt_logprobs");
  }
  if (request.prompt_logprobs >= 0 && !limits.can_score) {
    return fail(ErrorCode::unsupported, "this engine has no memory for scores of prompts",
                "prompt_logprobs");
  }
  SLUICE_TRY(check_vision(request, limits));
  if (request.pin) {
    SLUICE_TRY(check_pin(*request.pin, prompt_tokens, request.stop.tokens_max));
  }
  return check_ids("stop_token_ids", request.stop.stop_token_ids, limits.vocab_size);
}

// Another question about a picture leaves the prompt right after it. The frames of a video are one.
void keep_after_pictures(const std::vector<SequencePicture>& pictures, std::int64_t prompt_tokens,
                         std::vector<std::int64_t>& keep_at) {
  for (std::size_t i = 0; i < pictures.size(); ++i) {
    const bool is_last = i + 1 == pictures.size();
    const std::int64_t end = pictures[i].end();
    if (end <= prompt_tokens && (is_last || pictures[i + 1].position - end >= kKvBlockTokens)) {
      keep_at.push_back(end);
    }
  }
  std::ranges::sort(keep_at);
}

}  // namespace

Result<std::unique_ptr<Sequence>> make_sequence(Request request, std::function<void()> on_ready,
                                                const SequenceLimits& limits,
                                                Clock::TimePoint now) {
  SLUICE_TRY(check_request(request, limits));
  std::unique_ptr<TokenConstraint> constraint;
  if (request.constraint != nullptr) {
    constraint = SLUICE_TRY(request.constraint->start());
  }
  try {
    auto sequence = std::make_unique<Sequence>();
    sequence->request_id = std::move(request.id);
    sequence->sampling = std::move(request.sampling);
    if (!request.stop.ignore_eos) {
      sequence->stop_token_ids = std::move(request.stop.stop_token_ids);
    }
    sequence->priority = request.priority;
    sequence->prompt_tokens = std::ssize(request.token_ids);
    sequence->tokens_max =
        std::min(request.stop.tokens_max, limits.context_max - sequence->prompt_tokens);
    const std::int64_t tokens = sequence->prompt_tokens + sequence->tokens_max;
    sequence->tokens = std::move(request.token_ids);
    sequence->tokens.reserve(static_cast<std::size_t>(tokens));
    for (const VisionSpan& span : request.vision) {
      sequence->pictures.push_back({.position = span.position, .input = span.input});
    }
    sequence->rope_positions = MropePositions(request.vision);
    sequence->cache.block_table.reserve(static_cast<std::size_t>(ceil_div(tokens, kKvBlockTokens)));
    sequence->prompt_logprobs = request.prompt_logprobs;
    if (sequence->needs_scores()) {
      sequence->prompt_scores.reserve(static_cast<std::size_t>(sequence->prompt_tokens));
    }
    sequence->cache_salt = std::move(request.cache_salt);
    sequence->pin = std::move(request.pin);
    sequence->keep_at = std::move(request.stable_positions);
    keep_after_pictures(sequence->pictures, sequence->prompt_tokens, sequence->keep_at);
    sequence->events = std::make_shared<EventQueue>(sequence->tokens_max, std::move(on_ready));
    sequence->constraint = std::move(constraint);
    sequence->deadline = request.deadline;
    sequence->submitted_at = now;
    sequence->counted = request.counted;
    return sequence;
  } catch (const std::bad_alloc&) {
    return fail(ErrorCode::resource_exhausted, "no memory left for another request");
  }
}

}  // namespace sluice
