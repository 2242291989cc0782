// POST /v1/chat/completions.
#pragma once

#include "server/backend.h"

namespace sluice {

void handle_chat_completions(const Backend& backend, const std::shared_ptr<Exchange>& exchange);

}  // namespace sluice
