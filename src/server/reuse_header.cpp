#include "server/reuse_header.h"

#include <fmt/format.h>

#include <algorithm>

namespace sluice {

void append_reuse(std::string& header, const PromptReuse& reuse, std::span<const TokenId> prompt,
                  std::optional<TokenId> turn_start) {
  constexpr std::size_t kHeaderBytesMax = 1024;
  std::string entry =
      fmt::format("{}reused={}; stored={}; prompt={}; reason={}", header.empty() ? "" : ", ",
                  reuse.tokens, reuse.stored_tokens, prompt.size(), to_string(reuse.limit));
  if (reuse.diverged_at && *reuse.diverged_at < std::ssize(prompt)) {
    entry += fmt::format("; diverged_at={}", *reuse.diverged_at);
    const auto up_to = prompt.first(static_cast<std::size_t>(*reuse.diverged_at) + 1);
    const auto turns = turn_start ? std::ranges::count(up_to, *turn_start) : 0;
    if (turns > 0) {
      entry += fmt::format("; turn={}", turns - 1);
    }
  }
  if (header.size() + entry.size() <= kHeaderBytesMax) {
    header += entry;
  }
}

}  // namespace sluice
