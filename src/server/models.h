// GET /v1/models and /v1/models/{id}: one object that the OpenAI and the Anthropic SDKs both read.
// GET /props: what tools that know llama.cpp's server ask about the running model.
#pragma once

#include "server/backend.h"

namespace sluice {

void handle_models(const Backend& backend, const std::shared_ptr<Exchange>& exchange);
void handle_model(const Backend& backend, const std::shared_ptr<Exchange>& exchange);
void handle_props(const Backend& backend, const std::shared_ptr<Exchange>& exchange);

}  // namespace sluice
