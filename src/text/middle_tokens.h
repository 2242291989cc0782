// Filling in the middle: the control tokens of models that were trained to write what stands
// between two texts.
//
//   <|fim_prefix|> text before <|fim_suffix|> text after <|fim_middle|> -> the middle
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "text/tokenizer.h"

namespace sluice {

struct MiddleTokens {
  // Nothing where the tokenizer lacks one of the three.
  static std::optional<MiddleTokens> of(const Tokenizer& tokenizer);

  std::int32_t prefix = 0;
  std::int32_t suffix = 0;
  std::int32_t middle = 0;
  std::vector<std::int32_t> ends;  // after the middle: padding, another file, the end
};

}  // namespace sluice
