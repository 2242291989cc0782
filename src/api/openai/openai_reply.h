// JSON pieces that the chat and the completions dialect have in common.
#pragma once

#include <boost/json/object.hpp>
#include <boost/json/value.hpp>
#include <span>

#include "api/reply_format.h"

namespace sluice {

// Log-probabilities as JSON can say them: -inf and NaN become -9999.
double finite_logprob(float logprob);

// All keys, always.
boost::json::object usage_json(const AnswerUsage& usage);

boost::json::value stop_reason_json(const AnswerEnd& end);

boost::json::string finish_reason_json(FinishReason reason);

// Of an answer that has timings: they, and what of the prompt was reused.
boost::json::object timings_json(const AnswerEnd& end);

boost::json::array token_ids_json(std::span<const TokenId> ids);

// {"token", "logprob", "bytes", "top_logprobs"} for each token.
boost::json::array token_logprobs_json(std::span<const TokenEvent> tokens,
                                       const TokenBytes& token_bytes);

// {"id", "object", "created", "model", "system_fingerprint"}.
boost::json::object reply_head_json(const ReplyHead& head, boost::json::string_view object);

}  // namespace sluice
