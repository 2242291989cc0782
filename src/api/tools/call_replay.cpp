#include "api/tools/call_replay.h"

#include <algorithm>
#include <string_view>

#include "api/answer/call_markup.h"
#include "api/chat/template_text.h"

namespace sluice {
namespace {

struct Span {
  std::size_t begin = 0;
  std::size_t end = 0;
};

std::vector<Span> find_calls(const PromptText& prompt) {
  constexpr std::string_view kTurn = "<|im_start|>assistant";
  constexpr std::string_view kTurnEnd = "<|im_end|>";
  const TemplateText text(prompt);
  std::vector<Span> calls;
  for (std::size_t turn = text.find(kTurn, 0); turn != std::string::npos;
       turn = text.find(kTurn, turn + kTurn.size())) {
    const std::size_t end = text.find(kTurnEnd, turn);
    std::size_t open = text.find(kCallOpen, turn);
    while (open < end) {
      const std::size_t close = text.find(kCallClose, open);
      if (close >= end) {
        break;
      }
      calls.push_back({open, close + kCallClose.size()});
      open = text.find(kCallOpen, calls.back().end);
    }
  }
  return calls;
}

PromptText part_of(const PromptText& prompt, Span span) {
  PromptText part{.text = prompt.text.substr(span.begin, span.end - span.begin),
                  .literal_ranges = {},
                  .owner = prompt.owner};
  for (const auto& [begin, end] : prompt.literal_ranges) {
    if (begin < span.end && span.begin < end) {
      part.literal_ranges.emplace_back(std::max(begin, span.begin) - span.begin,
                                       std::min(end, span.end) - span.begin);
    }
  }
  return part;
}

}  // namespace

Result<std::vector<std::int32_t>> encode_prompt(const PromptText& prompt,
                                                std::span<const ReplayedCall> calls,
                                                const Tokenizer& tokenizer) {
  const bool any = std::ranges::any_of(calls, &ReplayedCall::has_value);
  const std::vector<Span> spans = any ? find_calls(prompt) : std::vector<Span>{};
  if (!any || spans.size() != calls.size()) {
    return tokenizer.encode(prompt);
  }
  std::vector<std::int32_t> ids;
  const auto append_part = [&](Span span) -> Result<void> {
    const auto part = SLUICE_TRY(tokenizer.encode(part_of(prompt, span)));
    ids.insert(ids.end(), part.begin(), part.end());
    return {};
  };
  std::size_t done = 0;
  for (std::size_t i = 0; i < calls.size(); ++i) {
    if (!calls[i]) {
      continue;
    }
    SLUICE_TRY(append_part({done, spans[i].begin}));
    ids.insert(ids.end(), calls[i]->begin(), calls[i]->end());
    done = spans[i].end;
  }
  SLUICE_TRY(append_part({done, prompt.text.size()}));
  return ids;
}

}  // namespace sluice
