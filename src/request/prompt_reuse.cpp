#include "request/prompt_reuse.h"

namespace sluice {

std::string_view to_string(ReuseLimit limit) {
  switch (limit) {
    case ReuseLimit::complete:
      return "complete";
    case ReuseLimit::prompt_short:
      return "prompt_short";
    case ReuseLimit::cache_off:
      return "cache_off";
    case ReuseLimit::cache_empty:
      return "cache_empty";
    case ReuseLimit::salt_unknown:
      return "salt_unknown";
    case ReuseLimit::end_of_stored:
      return "end_of_stored";
    case ReuseLimit::diverged:
      return "diverged";
    case ReuseLimit::no_state:
      return "no_state";
    case ReuseLimit::state_evicted:
      return "state_evicted";
    case ReuseLimit::scored:
      break;
  }
  return "scored";
}

}  // namespace sluice
