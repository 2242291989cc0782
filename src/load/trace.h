// A recorded load: one JSON object a line (docs/BENCHMARKS.md has the format).
//
//   {"at": 0.5, "conversation": "a", "body": {"messages": [...], "max_tokens": 64}}
//
// Thread rule: pure functions.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "load/conversation.h"

namespace sluice::load {

struct Trace {
  std::vector<PlannedConversation> conversations;  // by time of the first request
  std::size_t requests = 0;
};

// Errors invalid_argument name the line and the field; `name` is the file's.
Result<Trace> parse_trace(std::string_view text, std::string_view name);

}  // namespace sluice::load
