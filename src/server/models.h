// GET /v1/models and /v1/models/{id}: one object that the OpenAI and the Anthropic SDKs both read.
#pragma once

#include "server/backend.h"

namespace sluice {

void handle_models(const Backend& backend, const std::shared_ptr<Exchange>& exchange);
void handle_model(const Backend& backend, const std::shared_ptr<Exchange>& exchange);

}  // namespace sluice
