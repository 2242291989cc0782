// What of a rendered prompt the template wrote itself: spellings of control tokens in it are those
// tokens, not a user's characters.
#pragma once

#include <cstddef>
#include <string_view>

#include "text/tokenizer.h"

namespace sluice {

// The prompt must outlive it.
class TemplateText {
 public:
  explicit TemplateText(const PromptText& prompt) : prompt_(prompt) {}

  // Where the template wrote `word`, from `from` on; npos when it did not.
  std::size_t find(std::string_view word, std::size_t from) const;

 private:
  bool is_literal(std::size_t at) const;

  const PromptText& prompt_;
};

}  // namespace sluice
