// What the fields of a request are checked against.
#pragma once

#include <cstdint>

namespace sluice {

class GrammarCache;  // text/grammar_cache.h

struct RequestLimits {
  std::int64_t vocab_size = 0;       // token ids are in [0, this)
  GrammarCache* grammars = nullptr;  // null: what needs one is refused
  std::int64_t choices_max = 8;      // `n`
  bool client_templates = false;     // a request may bring its own chat_template
  bool tool_fence_guard = true;      // calls inside ``` fences are text (ToolSet)
};

}  // namespace sluice
