// The reply header x-sluice-reuse: how much of a prompt was reused, and why it was no more.
#pragma once

#include <cstddef>
#include <string>

#include "request/prompt_reuse.h"

namespace sluice {

// Appends "reused=128; stored=128; prompt=300; reason=diverged; diverged_at=150"; after a comma
// when `header` has something already. No more than 1 KiB altogether: what would not fit is left
// out.
void append_reuse(std::string& header, const PromptReuse& reuse, std::size_t prompt_tokens);

}  // namespace sluice
