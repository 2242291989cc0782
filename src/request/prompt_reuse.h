// How much of a prompt was found computed, and why it was no more. Plain data, told to clients and
// counted for operators.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace sluice {

enum class ReuseLimit {
  complete,       // all that can be reused was; the rest of the last block is always computed
  prompt_short,   // the prompt has no whole block before its last token
  cache_off,      // the server keeps nothing
  cache_empty,    // nothing is stored at all
  salt_unknown,   // nothing is stored under this key and salt
  end_of_stored,  // the prompt goes on where what is stored ends
  diverged,       // what is stored goes on differently
  no_state,       // keys and values of more tokens are stored, but no recurrent state to go on from
  state_evicted,  // the same; there was a state, and it had to make room
  scored,         // scores of the prompt were asked for: all of it is computed
};

inline constexpr std::array kReuseLimits{
    ReuseLimit::complete,    ReuseLimit::prompt_short, ReuseLimit::cache_off,
    ReuseLimit::cache_empty, ReuseLimit::salt_unknown, ReuseLimit::end_of_stored,
    ReuseLimit::diverged,    ReuseLimit::no_state,     ReuseLimit::state_evicted,
    ReuseLimit::scored,
};

std::string_view to_string(ReuseLimit limit);

struct PromptReuse {
  std::int64_t tokens = 0;  // not computed again
  std::int64_t stored_tokens =
      0;  // of these and those after them, whose keys and values are stored
  ReuseLimit limit = ReuseLimit::complete;
  // The first token in which the prompt differs from everything stored, when something is.
  std::optional<std::int64_t> diverged_at = std::nullopt;
};

}  // namespace sluice
