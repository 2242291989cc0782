#include "api/reply_format.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace sluice {

void ChoiceAnswer::add(AnswerDelta delta) {
  if (parts.empty() || !parts.back().take(delta)) {
    parts.push_back(std::move(delta));
  }
}

std::string ChoiceAnswer::text_of(AnswerPart part) const {
  std::string text;
  for (const AnswerDelta& delta : parts) {
    if (delta.part == part) {
      text += delta.text;
    }
  }
  return text;
}

std::vector<TokenEvent> ChoiceAnswer::tokens_of(AnswerPart part) const {
  std::vector<TokenEvent> tokens;
  for (const AnswerDelta& delta : parts) {
    if (delta.part == part) {
      std::ranges::copy(delta.tokens, std::back_inserter(tokens));
    }
  }
  return tokens;
}

}  // namespace sluice
