// validate(): the ranges of SamplingParams. A NaN fails every range.
#include <string>

#include "sampling/sampler.h"

namespace sluice {
namespace {

constexpr float kBiasMax = 100.0F;

std::unexpected<Error> out_of_range(const std::string& field, const std::string& value,
                                    const std::string& want) {
  return fail(ErrorCode::invalid_argument, field + ": " + value + ", want " + want, field);
}

struct Range {
  float lowest;
  float highest;
};

Result<void> check_range(const std::string& field, float value, Range range) {
  if (value >= range.lowest && value <= range.highest) {
    return {};
  }
  return out_of_range(field, std::to_string(value),
                      std::to_string(range.lowest) + " to " + std::to_string(range.highest));
}

Result<void> check_bias(const SamplingParams& params, std::int64_t vocab_size) {
  const std::string field = "logit_bias";
  if (std::ssize(params.logit_bias) > kLogitBiasMax) {
    return out_of_range(field, std::to_string(params.logit_bias.size()) + " entries",
                        "at most " + std::to_string(kLogitBiasMax));
  }
  for (const auto& [id, bias] : params.logit_bias) {
    if (id < 0 || id >= vocab_size) {
      return out_of_range(field, "token id " + std::to_string(id),
                          "0 to " + std::to_string(vocab_size - 1));
    }
    SLUICE_TRY(check_range(field + "." + std::to_string(id), bias, {-kBiasMax, kBiasMax}));
  }
  return {};
}

}  // namespace

Result<void> validate(const SamplingParams& params, std::int64_t vocab_size) {
  SLUICE_TRY(check_range("temperature", params.temperature, {0.0F, kTemperatureMax}));
  SLUICE_TRY(check_range("top_p", params.top_p, {0.0F, 1.0F}));
  SLUICE_TRY(check_range("min_p", params.min_p, {0.0F, 1.0F}));
  SLUICE_TRY(check_range("presence_penalty", params.presence_penalty, {-kPenaltyMax, kPenaltyMax}));
  SLUICE_TRY(
      check_range("frequency_penalty", params.frequency_penalty, {-kPenaltyMax, kPenaltyMax}));
  const bool in_range =
      params.repetition_penalty > 0.0F && params.repetition_penalty <= kPenaltyMax;
  if (!in_range) {
    return out_of_range("repetition_penalty", std::to_string(params.repetition_penalty),
                        "more than 0, at most 2");
  }
  if (params.top_k < 0) {
    return out_of_range("top_k", std::to_string(params.top_k), "0 (off) or more");
  }
  if (params.logprobs < -1 || params.logprobs > kLogprobsMax) {
    return out_of_range("logprobs", std::to_string(params.logprobs),
                        "-1 (none) to " + std::to_string(kLogprobsMax));
  }
  return check_bias(params, vocab_size);
}

}  // namespace sluice
