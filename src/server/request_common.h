// What all generating endpoints do between parsing and generating.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "api/generation_fields.h"
#include "api/openai_chat.h"
#include "api/reply_format.h"
#include "server/generation_run.h"

namespace sluice {

// The reason why no new request is taken now, or that the model is unknown.
std::optional<ApiError> check_admission(const Backend& backend);
std::optional<ApiError> check_model(const Backend& backend, const GenerationFields& fields);

// What parsers check token ids against.
RequestLimits request_limits(const Backend& backend);

// id, time, the model's name as the request said it, fingerprint.
ReplyHead make_reply_head(const Backend& backend, const GenerationFields& fields,
                          std::string_view id_prefix);

// How many tokens the answer to a prompt may have: what was asked for, or all that fits. Error when
// nothing fits. `param` names the field the prompt came from.
ApiResult<std::int64_t> answer_tokens_max(const Backend& backend, const GenerationFields& fields,
                                          std::int64_t prompt_tokens, const std::string& param);

// The `n` sequences that answer one prompt; each has its own seed.
std::vector<PlannedSequence> plan_sequences(const Backend& backend, const GenerationFields& fields,
                                            const std::string& request_id,
                                            const std::vector<TokenId>& token_ids,
                                            std::int64_t tokens_max, const AnswerRules& rules);

// The parts of a plan that the fields decide alone.
GenerationPlan make_plan(const GenerationFields& fields, const HttpRequest& request);

// The bytes of a token, as long as the backend lives.
TokenBytes token_bytes_of(const Backend& backend);

}  // namespace sluice
