#include "api/chat/template_text.h"

#include <algorithm>

namespace sluice {

std::size_t TemplateText::find(std::string_view word, std::size_t from) const {
  std::size_t at = prompt_.text.find(word, from);
  while (at != std::string::npos && is_literal(at)) {
    at = prompt_.text.find(word, at + 1);
  }
  return at;
}

bool TemplateText::is_literal(std::size_t at) const {
  const auto after = std::ranges::upper_bound(prompt_.literal_ranges, at, {},
                                              [](const auto& range) { return range.first; });
  return after != prompt_.literal_ranges.begin() && at < (after - 1)->second;
}

}  // namespace sluice
