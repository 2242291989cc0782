// For tests: answers as replies get them.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "api/reply_format.h"

namespace sluice {

// A piece of text of one part.
inline AnswerDelta piece(AnswerPart part, std::string text) {
  return {.part = part, .text = std::move(text)};
}

// The beginning of a call.
inline AnswerDelta call(std::string id, std::string name) {
  return {.part = AnswerPart::call, .text = "", .call = CallHead{std::move(id), std::move(name)}};
}

// What a whole reply is made of when its stream would say this.
inline ChoiceAnswer whole_of(const std::vector<AnswerDelta>& deltas) {
  ChoiceAnswer answer;
  for (const AnswerDelta& delta : deltas) {
    answer.add(delta);
  }
  return answer;
}

}  // namespace sluice
