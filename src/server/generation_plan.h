// What a generating endpoint hands to generation_run: the sequences to compute and the form of the
// reply; and the steps from a parsed request to there that all endpoints share.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "api/answer/answer_parser.h"
#include "api/fields/generation_fields.h"
#include "api/openai/chat_request.h"
#include "api/reply_format.h"
#include "request/request.h"
#include "server/backend.h"

namespace sluice {

struct PlannedSequence {
  Request request;
  AnswerRules rules;
  std::vector<AnswerDelta> opening = {};  // said before the first token (echo)
  std::string scored_echo = {};           // the same, with the scores of the prompt
  bool counts_prompt = true;              // false for all but the first answer to a prompt
};

struct GenerationPlan {
  std::vector<PlannedSequence> sequences;  // choice 0, 1, ...
  std::unique_ptr<ReplyFormat> format;
  bool stream = false;
  bool skip_special_tokens = true;
  bool keep_tokens = false;  // for logprobs
  bool return_token_ids = false;
  bool timings = false;
  std::vector<TokenId> reported_stop_ids = {};  // stop ids of the request: told as stop_reason
  std::function<void(const FinishedCall&)> on_call = {};  // of any choice, when it is complete
  // When the engine has taken the request; `cancel` ends the answer where it is, from any thread.
  std::function<void(std::function<void()> cancel)> on_start = {};
  std::function<void()> on_end = {};  // once, after on_start, however it ended
  std::optional<std::chrono::steady_clock::time_point> deadline;
  std::optional<std::string> request_id;  // the client's, from the body
  std::vector<std::string> ignored = {};  // for x-ignored-params
};

// The cache salt of the engine for a `cache_salt` of a client: clients with different keys share
// nothing, whatever salts they choose.
std::string cache_namespace(std::string_view api_key, std::string_view cache_salt);

// The reason why no new request is taken now, or that the model is unknown.
std::optional<ApiError> check_admission(const Backend& backend);
std::optional<ApiError> check_model(const Backend& backend, const GenerationFields& fields);

// Whose computed prefixes and remembered calls a request may use: those of the same API key and
// salt. Never empty.
std::string cache_owner(const Backend& backend, const GenerationFields& fields,
                        const HttpRequest& http);

// What parsers check token ids against.
RequestLimits request_limits(const Backend& backend);

// id, time, the model's name as the request said it, fingerprint.
ReplyHead make_reply_head(const Backend& backend, const GenerationFields& fields,
                          std::string_view id_prefix);

// Tokens of prompt and answer together that the key of a request may use: the engine's context, or
// less.
std::int64_t context_max_of(const Backend& backend, const HttpRequest& http);

// How many tokens the answer to a prompt may have: what was asked for, or all that fits and this
// server allows. Error when nothing fits. `param` names the field the prompt came from.
ApiResult<std::int64_t> answer_tokens_max(const Backend& backend, const HttpRequest& http,
                                          ApiDialect dialect, const GenerationFields& fields,
                                          std::int64_t prompt_tokens, const std::string& param);

// The `n` sequences that answer one prompt; each has its own seed.
std::vector<PlannedSequence> plan_sequences(const Backend& backend, const GenerationFields& fields,
                                            const HttpRequest& http,
                                            const std::vector<TokenId>& token_ids,
                                            std::int64_t tokens_max, const AnswerRules& rules);

// Error when the plan has more sequences than running and waiting ones together may ever be: no
// repetition of such a request could succeed. `param` names the field that asks for them.
std::optional<ApiError> check_sequence_count(const Backend& backend, const GenerationPlan& plan,
                                             const std::string& param);

// The parts of a plan that the fields decide alone.
GenerationPlan make_plan(const GenerationFields& fields, const HttpRequest& request);

// The bytes of a token, as long as the backend lives.
TokenBytes token_bytes_of(const Backend& backend);

}  // namespace sluice
