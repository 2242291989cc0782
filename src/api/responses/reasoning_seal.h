// Reasoning as a string that clients carry but need not read (`encrypted_content`): an agent that
// keeps no state on the server sends it back, and the next prompt has the reasoning in its place.
//
// It is wrapped, not secret: whoever may have the answer may have its reasoning too.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace sluice {

std::string seal_reasoning(std::string_view text);

// Nothing when this is not one of ours: other servers have such strings too.
std::optional<std::string> unseal_reasoning(std::string_view sealed);

}  // namespace sluice
