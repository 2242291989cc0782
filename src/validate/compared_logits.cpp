#include "validate/compared_logits.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstddef>

#include "model/lone_sequence.h"
#include "model/qwen3_5.h"

namespace sluice::validate {

Result<Logits> logits_of(Qwen3_5& model, std::span<const TokenId> token_ids,
                         std::span<const std::int64_t> pieces) {
  const auto total = static_cast<std::int64_t>(token_ids.size());
  LoneSequence sequence = SLUICE_TRY(LoneSequence::create(model, total));
  Logits logits;
  std::vector<std::int32_t> rows;
  for (std::size_t step = 0; sequence.position() < total; ++step) {
    const std::int64_t begin = sequence.position();
    const std::int64_t count =
        std::min({pieces[step % pieces.size()], total - begin, model.options().step_tokens_max});
    rows.clear();
    for (std::int64_t i = 0; i < count; ++i) {
      if ((begin + i + 1) % kLogitEvery == 0 || begin + i + 1 == total) {
        rows.push_back(static_cast<std::int32_t>(i));
        logits.positions.push_back(begin + i);
      }
    }
    const std::size_t before = logits.values.size();
    logits.values.resize(before +
                         rows.size() * static_cast<std::size_t>(model.config().vocab_size));
    sequence.forward(
        token_ids.subspan(static_cast<std::size_t>(begin), static_cast<std::size_t>(count)), rows,
        std::span(logits.values).subspan(before));
  }
  return logits;
}

std::optional<std::string> difference(const Logits& wanted, const Logits& found) {
  const std::size_t vocab_size = wanted.values.size() / wanted.positions.size();
  for (std::size_t i = 0; i < wanted.values.size(); ++i) {
    if (std::bit_cast<std::uint32_t>(wanted.values[i]) !=
        std::bit_cast<std::uint32_t>(found.values[i])) {
      return fmt::format("logits after {} tokens differ, first at token id {}: {} instead of {}",
                         wanted.positions[i / vocab_size] + 1, i % vocab_size, found.values[i],
                         wanted.values[i]);
    }
  }
  return std::nullopt;
}

}  // namespace sluice::validate
