// From what the cache found of a prompt to why it was no more.
#pragma once

#include <cstdint>

#include "cache/hybrid_cache.h"
#include "request/prompt_reuse.h"

namespace sluice {

struct ReuseCircumstances {
  std::int64_t wanted_tokens = 0;  // given to HybridCache::resume()
  bool is_scored = false;          // the prompt
  bool keeps_prefixes = false;
  bool stores_anything = false;  // under any salt
};

PromptReuse explain_reuse(const PrefixReuse& found, const ReuseCircumstances& circumstances);

}  // namespace sluice
