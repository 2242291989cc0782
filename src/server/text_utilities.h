// What a prompt is made of, without generating: POST /tokenize, /detokenize, /apply-template and
// /chat/completions/input_tokens. They need no engine and work while the model loads.
#pragma once

#include "server/backend.h"

namespace sluice {

void handle_tokenize(const Backend& backend, const std::shared_ptr<Exchange>& exchange);
void handle_detokenize(const Backend& backend, const std::shared_ptr<Exchange>& exchange);
void handle_apply_template(const Backend& backend, const std::shared_ptr<Exchange>& exchange);
void handle_chat_input_tokens(const Backend& backend, const std::shared_ptr<Exchange>& exchange);

}  // namespace sluice
