// Whether the model shall reason, and where the reasoning goes: many clients, many spellings.
#pragma once

#include <boost/json/object.hpp>
#include <optional>
#include <string>

#include "api/json_fields.h"

namespace sluice {

struct ThinkingFields {
  bool enabled = true;
  std::optional<std::string> effort;  // as given; templates that know efforts get it
  bool excluded = false;              // generated and counted, but not returned
};

// `kwargs` are the chat_template_kwargs, or null. The first given of these decides: kwargs,
// enable_thinking, thinking.type, a budget of 0, the effort, `enabled_by_default`.
// A budget or an effort that stands for one is refused while thinking is on: reasoning cannot be
// limited yet, and a reply that ignored the limit would be another answer.
ThinkingFields read_thinking(JsonFields& body, JsonFields* kwargs, bool enabled_by_default);

}  // namespace sluice
