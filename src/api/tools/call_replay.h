// Puts the remembered tokens of calls into a rendered prompt (call_memory.h).
//
// The template is not changed and not asked: in what it wrote, the text from its own <tool_call> to
// its own </tool_call> inside an assistant's turn is one call, and they come in the order of the
// history. When there are not as many as the history has calls, the prompt is left as rendered.
// The pieces between are encoded one by one; since the tags are tokens of their own, the tokens are
// those of the whole.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "text/tokenizer.h"

namespace sluice {

// Tokens of one call of the history; nothing: as the template writes it.
using ReplayedCall = std::optional<std::vector<std::int32_t>>;

// The prompt's tokens. calls: one for each call of the history, in order. Errors: those of
// Tokenizer::encode().
Result<std::vector<std::int32_t>> encode_prompt(const PromptText& prompt,
                                                std::span<const ReplayedCall> calls,
                                                const Tokenizer& tokenizer);

}  // namespace sluice
