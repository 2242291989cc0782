#include "api/openai/openai_reply.h"

#include <cmath>

#include "api/fields/json_text.h"

namespace sluice {
namespace {

namespace json = boost::json;

json::object token_json(TokenId id, float logprob, const TokenBytes& token_bytes) {
  const std::string_view bytes = token_bytes(id);
  json::array list;
  list.reserve(bytes.size());
  for (const char byte : bytes) {
    list.push_back(static_cast<std::int64_t>(static_cast<unsigned char>(byte)));
  }
  return json::object{{"token", replace_invalid_utf8(bytes)},
                      {"logprob", finite_logprob(logprob)},
                      {"bytes", std::move(list)}};
}

}  // namespace

double finite_logprob(float logprob) {
  constexpr double kNever = -9999.0;
  return std::isfinite(logprob) ? static_cast<double>(logprob) : kNever;
}

json::object usage_json(const AnswerUsage& usage) {
  return json::object{
      {"prompt_tokens", usage.prompt_tokens},
      {"completion_tokens", usage.completion_tokens},
      {"total_tokens", usage.prompt_tokens + usage.completion_tokens},
      {"prompt_tokens_details",
       json::object{{"cached_tokens", usage.cached_tokens}, {"image_tokens", usage.image_tokens}}},
      {"completion_tokens_details", json::object{{"reasoning_tokens", usage.reasoning_tokens},
                                                 {"accepted_prediction_tokens", 0},
                                                 {"rejected_prediction_tokens", 0}}}};
}

json::value stop_reason_json(const AnswerEnd& end) {
  if (end.stop_text) {
    return json::value(json::string(*end.stop_text));
  }
  return end.stop_token_id ? json::value(*end.stop_token_id) : json::value(nullptr);
}

json::string finish_reason_json(FinishReason reason) {
  return json::string(to_string(reason));
}

json::object timings_json(const AnswerEnd& end) {
  constexpr double kMilliseconds = 1000.0;
  json::object timings{{"queue_ms", end.timings->queue_seconds * kMilliseconds},
                       {"prefill_ms", end.timings->prefill_seconds * kMilliseconds},
                       {"decode_ms", end.timings->decode_seconds * kMilliseconds}};
  if (end.reuse) {
    timings["reuse"] =
        json::object{{"reused", end.reuse->tokens},
                     {"stored", end.reuse->stored_tokens},
                     {"reason", to_string(end.reuse->limit)},
                     {"diverged_at", end.reuse->diverged_at ? json::value(*end.reuse->diverged_at)
                                                            : json::value(nullptr)}};
  }
  return timings;
}

json::array token_ids_json(std::span<const TokenId> ids) {
  return json::array(ids.begin(), ids.end());
}

json::array token_logprobs_json(std::span<const TokenEvent> tokens, const TokenBytes& token_bytes) {
  json::array list;
  list.reserve(tokens.size());
  for (const TokenEvent& token : tokens) {
    json::array top;
    for (const TokenLogprob& candidate : token.top_logprobs) {
      top.push_back(token_json(candidate.token_id, candidate.logprob, token_bytes));
    }
    json::object entry = token_json(token.token_id, token.logprob.value_or(NAN), token_bytes);
    entry["top_logprobs"] = std::move(top);
    list.push_back(std::move(entry));
  }
  return list;
}

json::object reply_head_json(const ReplyHead& head, json::string_view object) {
  return json::object{{"id", head.id},
                      {"object", object},
                      {"created", head.created},
                      {"model", head.model},
                      {"system_fingerprint", head.fingerprint}};
}

}  // namespace sluice
