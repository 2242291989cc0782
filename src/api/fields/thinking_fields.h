// Whether the model shall reason, and where the reasoning goes: many clients, many spellings.
#pragma once

#include <boost/json/object.hpp>
#include <cstdint>
#include <optional>
#include <string>

#include "api/fields/json_fields.h"

namespace sluice {

// Reasoning tokens that an effort stands for; high and above have no limit.
struct EffortBudgets {
  std::int64_t minimal = 1024;
  std::int64_t low = 4096;
  std::int64_t medium = 16384;
};

// What holds when the request does not say.
struct ThinkingDefaults {
  bool enabled = true;
  bool forbidden = false;  // never, whatever the request says
  EffortBudgets budgets = {};
};

struct ThinkingFields {
  bool enabled = true;
  std::int64_t tokens_max = -1;       // of the reasoning; -1: no limit
  std::optional<std::string> effort;  // as given; templates that know efforts get it
  bool excluded = false;              // generated and counted, but not returned
};

// `kwargs` are the chat_template_kwargs, or null. The first given of these decides: kwargs,
// enable_thinking, thinking.type, a budget of 0, the effort, `defaults`. The budget is the first of
// thinking_token_budget, thinking_budget, reasoning.max_tokens, thinking.budget_tokens, that of the
// kwargs, and what the effort stands for; -1 says that there is none. Where thinking is forbidden,
// the wish for it counts as ignored.
ThinkingFields read_thinking(JsonFields& body, JsonFields* kwargs,
                             const ThinkingDefaults& defaults);

}  // namespace sluice
