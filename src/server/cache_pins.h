// Pinned prefixes over HTTP: made, listed and ended by operators.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "api/cache_pins.h"
#include "server/backend.h"

namespace sluice {

void handle_make_pin(const Backend& backend, const std::shared_ptr<Exchange>& exchange);
void handle_pins(const Backend& backend, const std::shared_ptr<Exchange>& exchange);
void handle_pin(const Backend& backend, const std::shared_ptr<Exchange>& exchange);
void handle_delete_pin(const Backend& backend, const std::shared_ptr<Exchange>& exchange);

std::vector<PinReport> report_pins(std::span<const PinnedPrefix> pins);

// Replies with what `answer` makes of the pins there are; it is called on the exchange's thread.
void answer_with_pins(const Backend& backend, const std::shared_ptr<Exchange>& exchange,
                      std::function<HttpResponse(const std::vector<PinnedPrefix>&)> answer);

}  // namespace sluice
