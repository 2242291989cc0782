// What the parser of answers makes of a text, for tests and for bug reports.
#pragma once

#include "server/backend.h"

namespace sluice {

// POST /debug/parse: what the parser of answers makes of a given text, as a chat reply and as the
// deltas of its stream. {"text" or "chunks": [...], "tools", "tool_choice", "parallel_tool_calls",
// "thinking_open", "finish": "stop" or "length"}. Exists only with --enable-debug.
void handle_debug_parse(const Backend& backend, const std::shared_ptr<Exchange>& exchange);

}  // namespace sluice
