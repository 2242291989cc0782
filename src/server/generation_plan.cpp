#include "server/generation_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <utility>

#include "server/access.h"
#include "server/error_map.h"
#include "text/answer_constraint.h"
#include "text/thinking_tokens.h"

namespace sluice {
namespace {

// Where the messages of a conversation begin: the first two (system message and tools end there)
// and the last ones. The next prompt repeats everything before the last one; of that it may drop
// the reasoning.
std::vector<std::int64_t> turn_starts(const Tokenizer& tokenizer,
                                      const std::vector<TokenId>& token_ids) {
  std::vector<std::int64_t> positions;
  const auto start = tokenizer.token_id("<|im_start|>");
  for (std::size_t i = 0; start && i < token_ids.size(); ++i) {
    if (token_ids[i] == *start) {
      positions.push_back(static_cast<std::int64_t>(i));
    }
  }
  constexpr std::ptrdiff_t kFirst = 2;
  constexpr std::ptrdiff_t kLast = 16;
  if (std::ssize(positions) > kFirst + kLast) {
    positions.erase(positions.begin() + kFirst, positions.end() - kLast);
  }
  return positions;
}

// The header x-request-timeout, in seconds; anything that is no positive number is as if absent.
std::optional<double> timeout_header(const HttpRequest& request) {
  const std::string_view text = request.header("x-request-timeout");
  double seconds = 0.0;
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), seconds);
  constexpr double kTimeoutSecondsMax = 1e6;
  const bool valid = failure == std::errc() && end == text.data() + text.size() && seconds > 0.0 &&
                     seconds <= kTimeoutSecondsMax;
  return valid ? std::optional(seconds) : std::nullopt;
}

// What limits the choice of the answer's tokens; null when nothing does.
std::shared_ptr<const ConstraintFactory> constraint_of(const Backend& backend,
                                                       const GenerationFields& fields,
                                                       const AnswerRules& rules,
                                                       const StopCriteria& stop) {
  AnswerConstraintOptions options{
      .starts_inside_reasoning = rules.starts_inside_reasoning,
      .reasoning_tokens_max = rules.starts_inside_reasoning ? fields.reasoning_tokens_max : -1,
      .grammar = fields.constraint.grammar,
      .call_token = rules.tools != nullptr ? rules.call_token : std::nullopt,
      .call_end_token = backend.model->tokenizer.token_id(kCallClose),
      .calls = fields.constraint.calls,
      .grammar_has_calls = fields.constraint.grammar_has_calls,
      .tokens_min = fields.constraint.tokens_min,
      .stop_ids = stop.stop_token_ids,
      .bad_words = fields.constraint.bad_words,
      .allowed_ids = fields.constraint.allowed_token_ids};
  if (!options.constrains()) {
    return nullptr;
  }
  return make_answer_constraint(std::move(options), backend.model->tokenizer, backend.thinking);
}

// What the request says, then what the operator says for this kind of answer. (The values of the
// model's own files come last.)
SamplingFields sampling_of(const Backend& backend, const GenerationFields& fields,
                           const AnswerRules& rules) {
  SamplingFields sampling = fields.sampling;
  const SamplingDefaults& defaults = backend.config->sampling;
  complete_sampling(sampling, rules.starts_inside_reasoning ? defaults.thinking : defaults.direct);
  return sampling;
}

}  // namespace

std::string cache_namespace(std::string_view api_key, std::string_view cache_salt) {
  std::string salt(api_key);
  salt += '\0';  // in no key
  return salt.append(cache_salt);
}

std::optional<ApiError> check_admission(const Backend& backend) {
  switch (backend.readiness->status()) {
    case Readiness::Status::draining:
      return ApiError{ApiErrorKind::not_ready, "the server is shutting down", ""};
    case Readiness::Status::device_error:
      return ApiError{ApiErrorKind::not_ready, "the model does not compute on this machine", ""};
    case Readiness::Status::loading:
      return ApiError{ApiErrorKind::not_ready, "the model is loading", ""};
    case Readiness::Status::warming_up:
    case Readiness::Status::ready:
      break;
  }
  return std::nullopt;
}

std::optional<ApiError> check_model(const Backend& backend, const GenerationFields& fields) {
  if (!backend.config->strict_model || !fields.model || *fields.model == backend.model->id) {
    return std::nullopt;
  }
  const auto& aliases = backend.model->aliases;
  if (std::find(aliases.begin(), aliases.end(), *fields.model) != aliases.end()) {
    return std::nullopt;
  }
  return ApiError{ApiErrorKind::model_not_found,
                  fmt::format("there is no model of that name; {} is served", backend.model->id),
                  "model"};
}

std::string cache_owner(const Backend& backend, const GenerationFields& fields,
                        const HttpRequest& http) {
  return cache_namespace(presented_key(backend.config->api_keys, http), fields.cache_salt);
}

RequestLimits request_limits(const Backend& backend) {
  return {.vocab_size = backend.model->tokenizer.vocab_size(),
          .grammars = backend.grammars,
          .choices_max = backend.config->choices_max,
          .client_templates = backend.config->client_templates,
          .tool_fence_guard = backend.config->tool_fence_guard};
}

ReplyHead make_reply_head(const Backend& backend, const GenerationFields& fields,
                          std::string_view id_prefix) {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return {.id = random_id(id_prefix),
          .created = std::chrono::duration_cast<std::chrono::seconds>(now).count(),
          .model = fields.model.value_or(backend.model->id),
          .fingerprint = backend.model->fingerprint};
}

std::int64_t context_max_of(const Backend& backend, const HttpRequest& http) {
  const std::int64_t context = backend.engine->config().context_max;
  const auto& limits = backend.config->key_context_max;
  const auto limit = limits.find(presented_key(backend.config->api_keys, http));
  return limit == limits.end() ? context : std::min(context, limit->second);
}

ApiResult<std::int64_t> answer_tokens_max(const Backend& backend, const HttpRequest& http,
                                          ApiDialect dialect, const GenerationFields& fields,
                                          std::int64_t prompt_tokens, const std::string& param) {
  const std::int64_t context = context_max_of(backend, http);
  const bool too_much =
      backend.config->reject_overflow && fields.tokens_max.value_or(0) > context - prompt_tokens;
  if (prompt_tokens >= context || too_much) {
    return std::unexpected(
        context_overflow_error(dialect,
                               {.context_tokens_max = context,
                                .prompt_tokens = prompt_tokens,
                                .completion_tokens = fields.tokens_max.value_or(0)},
                               param));
  }
  std::int64_t most = context - prompt_tokens;
  if (const std::int64_t allowed = backend.config->answer_tokens_max; allowed > 0) {
    if (backend.config->reject_overflow && fields.tokens_max.value_or(0) > allowed) {
      return api_fail(ApiErrorKind::invalid_value,
                      fmt::format("max_tokens is {}, this server allows at most {}",
                                  *fields.tokens_max, allowed),
                      "max_tokens");
    }
    most = std::min(most, allowed);
  }
  return std::min(fields.tokens_max.value_or(most), most);
}

std::vector<PlannedSequence> plan_sequences(const Backend& backend, const GenerationFields& fields,
                                            const HttpRequest& http,
                                            const std::vector<TokenId>& token_ids,
                                            std::int64_t tokens_max, const AnswerRules& rules) {
  const GenerationConfig& model = backend.model->generation;
  Request request;
  request.id = fields.request_id.value_or(http.id);
  request.token_ids = token_ids;
  request.sampling = resolve_sampling(sampling_of(backend, fields, rules), model, random_seed());
  request.sampling.logprobs = fields.logprobs;
  request.stop = resolve_stop(fields, model, tokens_max);
  request.priority = fields.priority;
  request.cache_salt = cache_owner(backend, fields, http);
  request.stable_positions = turn_starts(backend.model->tokenizer, token_ids);
  request.constraint = constraint_of(backend, fields, rules, request.stop);
  const std::uint64_t seed = request.sampling.seed;
  std::vector<PlannedSequence> sequences;
  for (std::int64_t k = 0; k < fields.choices; ++k) {
    request.sampling.seed = seed + static_cast<std::uint64_t>(k);
    sequences.push_back({.request = request, .rules = rules, .counts_prompt = k == 0});
  }
  return sequences;
}

std::optional<ApiError> check_sequence_count(const Backend& backend, const GenerationPlan& plan,
                                             const std::string& param) {
  const EngineConfig& engine = backend.engine->config();
  const std::int64_t sequences_max = engine.sequences_max + engine.queue_max;
  if (std::ssize(plan.sequences) <= sequences_max) {
    return std::nullopt;
  }
  return ApiError{
      ApiErrorKind::invalid_value,
      fmt::format("the request asks for {} answers, this server takes at most {} at once",
                  plan.sequences.size(), sequences_max),
      param};
}

GenerationPlan make_plan(const GenerationFields& fields, const HttpRequest& request) {
  GenerationPlan plan;
  plan.stream = fields.stream;
  plan.skip_special_tokens = fields.skip_special_tokens;
  plan.keep_tokens = fields.logprobs >= 0;
  plan.return_token_ids = fields.return_token_ids;
  plan.timings = fields.timings;
  plan.reported_stop_ids = fields.stop_token_ids;
  plan.request_id = fields.request_id;
  const auto timeout = fields.timeout_seconds ? fields.timeout_seconds : timeout_header(request);
  if (timeout) {
    plan.deadline =
        request.received + std::chrono::duration_cast<std::chrono::steady_clock::duration>(
                               std::chrono::duration<double>(*timeout));
  }
  return plan;
}

TokenBytes token_bytes_of(const Backend& backend) {
  return [tokenizer = &backend.model->tokenizer](TokenId id) { return tokenizer->token_bytes(id); };
}

}  // namespace sluice
