#include "server/reuse_header.h"

#include <fmt/format.h>

namespace sluice {

void append_reuse(std::string& header, const PromptReuse& reuse, std::size_t prompt_tokens) {
  constexpr std::size_t kHeaderBytesMax = 1024;
  std::string entry =
      fmt::format("{}reused={}; stored={}; prompt={}; reason={}", header.empty() ? "" : ", ",
                  reuse.tokens, reuse.stored_tokens, prompt_tokens, to_string(reuse.limit));
  if (reuse.diverged_at) {
    entry += fmt::format("; diverged_at={}", *reuse.diverged_at);
  }
  if (header.size() + entry.size() <= kHeaderBytesMax) {
    header += entry;
  }
}

}  // namespace sluice
