// Server-sent events as bytes.
#pragma once

#include <string>
#include <vector>

#include "api/reply_format.h"
#include "server/http_message.h"

namespace sluice {

// "event: NAME\ndata: DATA\n\n" for each; data must be one line.
std::string sse_text(const std::vector<SseEvent>& events);

// A comment: keeps the connection from looking dead.
inline constexpr const char* kSsePing = ": ping\n\n";

// The head of an event stream.
HttpResponse sse_head();

}  // namespace sluice
