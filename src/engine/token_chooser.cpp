#include "engine/token_chooser.h"

#include <algorithm>

#include "base/checked_math.h"

namespace sluice {
namespace {

constexpr std::int64_t kWordBits = 32;

}  // namespace

TokenChooser::TokenChooser(std::int64_t vocab_size)
    : vocab_size_(vocab_size),
      sampler_(vocab_size),
      allowed_(static_cast<std::size_t>(ceil_div(vocab_size, kWordBits))) {}

Result<ChosenToken> TokenChooser::choose(Sequence& sequence, std::span<const float> logits) {
  const auto allowed = SLUICE_TRY(allowed_tokens(sequence));
  ChosenToken chosen;
  chosen.event = SLUICE_TRY(sampler_.sample({.logits = logits,
                                             .prompt = sequence.prompt(),
                                             .generated = sequence.generated(),
                                             .allowed = allowed,
                                             .position = std::ssize(sequence.tokens)},
                                            sequence.sampling));
  if (sequence.constraint) {
    SLUICE_TRY(sequence.constraint->accept(chosen.event.token_id));
    chosen.is_last = SLUICE_TRY(sequence.constraint->is_finished());
  }
  return chosen;
}

// Empty when all tokens may come. Valid until the next call.
Result<std::span<const std::uint32_t>> TokenChooser::allowed_tokens(Sequence& sequence) {
  if (!sequence.constraint) {
    return {};
  }
  std::ranges::fill(allowed_, ~std::uint32_t{0});
  if (!SLUICE_TRY(sequence.constraint->narrow(allowed_))) {
    return {};
  }
  if (const std::int64_t rest = vocab_size_ % kWordBits; rest != 0) {
    allowed_.back() &= (std::uint32_t{1} << rest) - 1;
  }
  if (std::ranges::all_of(allowed_, [](std::uint32_t word) { return word == 0; })) {
    return fail(ErrorCode::invalid_argument,
                "no token may come next: the constraints of the request exclude every one");
  }
  return std::span<const std::uint32_t>(allowed_);
}

}  // namespace sluice
