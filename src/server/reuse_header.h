// The reply header x-sluice-reuse: how much of a prompt was reused, and why it was no more.
#pragma once

#include <optional>
#include <span>
#include <string>

#include "request/prompt_reuse.h"
#include "request/request.h"

namespace sluice {

// Appends "reused=128; stored=128; prompt=300; reason=diverged; diverged_at=150; turn=2"; after a
// comma when `header` has something already. No more than 1 KiB altogether: what would not fit is
// left out. `turn_start` is the token that begins a turn of a conversation.
void append_reuse(std::string& header, const PromptReuse& reuse, std::span<const TokenId> prompt,
                  std::optional<TokenId> turn_start);

}  // namespace sluice
