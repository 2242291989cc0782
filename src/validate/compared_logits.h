// Logits of some positions of a prompt, and whether those of two models or two ways are the same,
// bit for bit.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "request/request.h"

namespace sluice {
class Qwen3_5;
}

namespace sluice::validate {

inline constexpr std::int64_t kLogitEvery = 16;

// Of every kLogitEvery-th position and of the last one.
struct Logits {
  std::vector<std::int64_t> positions;
  std::vector<float> values;  // [positions][vocab_size]
};

// `pieces` are tokens of the steps, repeated until the prompt ends. Error resource_exhausted.
Result<Logits> logits_of(Qwen3_5& model, std::span<const TokenId> token_ids,
                         std::span<const std::int64_t> pieces);

// The first value of `found` that is not the same bits, in words; none when all are. Both are of
// the same positions.
std::optional<std::string> difference(const Logits& wanted, const Logits& found);

}  // namespace sluice::validate
