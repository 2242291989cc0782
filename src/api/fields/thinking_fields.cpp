#include "api/fields/thinking_fields.h"

#include <fmt/format.h>

#include <array>
#include <cstdint>
#include <limits>
#include <string_view>
#include <utility>

namespace sluice {
namespace {

struct Effort {
  std::string_view name;
  bool thinks;
  std::int64_t EffortBudgets::* budget;  // null: no limit
};

constexpr std::array<Effort, 7> kEfforts{{{"none", false, nullptr},
                                          {"minimal", true, &EffortBudgets::minimal},
                                          {"low", true, &EffortBudgets::low},
                                          {"medium", true, &EffortBudgets::medium},
                                          {"high", true, nullptr},
                                          {"xhigh", true, nullptr},
                                          {"max", true, nullptr}}};

// An effort as given, with the path of the field.
struct SaidEffort {
  std::string value;
  std::string path;
};

struct Wishes {
  std::optional<bool> thinking_type;
  std::optional<std::int64_t> budget;
  std::optional<SaidEffort> effort;
  bool excluded = false;
};

void read_budget(JsonFields& fields, std::string_view key, Wishes& wishes) {
  const auto tokens = fields.integer(key, {-1, std::numeric_limits<std::int64_t>::max()});
  if (tokens && !wishes.budget) {
    wishes.budget = tokens;
  }
}

void read_effort(JsonFields& fields, std::string_view key, Wishes& wishes) {
  const auto effort = fields.string(key);
  if (effort && !wishes.effort) {
    wishes.effort = {*effort, fields.path_of(key)};
  }
}

void read_thinking_object(JsonFields& body, Wishes& wishes) {
  auto thinking = body.object("thinking");
  if (!thinking) {
    return;
  }
  if (const auto type = thinking->string("type")) {
    wishes.thinking_type = *type != "disabled";
    if (*type != "enabled" && *type != "adaptive" && *type != "disabled") {
      body.report().fail(ApiErrorKind::invalid_value,
                         fmt::format("{} is '{}', want enabled, adaptive or disabled",
                                     thinking->path_of("type"), type->substr(0, 64)),
                         thinking->path_of("type"));
    }
  }
  read_budget(*thinking, "budget_tokens", wishes);
  thinking->ignore_rest();
}

Wishes read_wishes(JsonFields& body, JsonFields* kwargs) {
  Wishes wishes;
  read_budget(body, "thinking_token_budget", wishes);
  read_budget(body, "thinking_budget", wishes);
  if (auto reasoning = body.object("reasoning")) {
    read_budget(*reasoning, "max_tokens", wishes);
    read_effort(*reasoning, "effort", wishes);
    wishes.excluded = reasoning->boolean("exclude").value_or(false);
    reasoning->ignore_rest();
  }
  read_thinking_object(body, wishes);
  read_effort(body, "reasoning_effort", wishes);
  if (kwargs != nullptr) {
    read_budget(*kwargs, "thinking_budget", wishes);
    read_effort(*kwargs, "reasoning_effort", wishes);
  }
  return wishes;
}

const Effort* find_effort(const SaidEffort& said, FieldReport& report) {
  for (const Effort& effort : kEfforts) {
    if (effort.name == said.value) {
      return &effort;
    }
  }
  report.fail(ApiErrorKind::invalid_value,
              fmt::format("{} is '{}', want none, minimal, low, medium, high, xhigh or max",
                          said.path, said.value.substr(0, 64)),
              said.path);
  return nullptr;
}

}  // namespace

ThinkingFields read_thinking(JsonFields& body, JsonFields* kwargs,
                             const ThinkingDefaults& defaults) {
  const Wishes wishes = read_wishes(body, kwargs);
  const Effort* effort = wishes.effort ? find_effort(*wishes.effort, body.report()) : nullptr;

  ThinkingFields thinking;
  thinking.excluded = wishes.excluded || !body.boolean("include_reasoning").value_or(true);
  std::optional<bool> enabled;
  std::string decided_by;
  const auto decide = [&](std::optional<bool> value, std::string path) {
    if (!enabled && value) {
      enabled = value;
      decided_by = std::move(path);
    }
  };
  if (kwargs != nullptr) {
    decide(kwargs->boolean("enable_thinking"), kwargs->path_of("enable_thinking"));
  }
  decide(body.boolean("enable_thinking"), body.path_of("enable_thinking"));
  decide(wishes.thinking_type, body.path_of("thinking"));
  if (wishes.budget == 0) {
    decide(false, "");
  }
  if (effort != nullptr) {
    decide(effort->thinks, wishes.effort->path);
  }
  if (defaults.forbidden && enabled == true) {
    body.report().ignore(decided_by);
  }
  thinking.enabled = !defaults.forbidden && enabled.value_or(defaults.enabled);
  if (effort != nullptr) {
    thinking.effort = wishes.effort->value;
  }
  if (!thinking.enabled) {
    return thinking;
  }
  if (wishes.budget) {
    thinking.tokens_max = *wishes.budget;
  } else if (effort != nullptr && effort->budget != nullptr) {
    thinking.tokens_max = defaults.budgets.*(effort->budget);
  }
  return thinking;
}

}  // namespace sluice
