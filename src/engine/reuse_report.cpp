#include "engine/reuse_report.h"

namespace sluice {
namespace {

ReuseLimit limit_of(const PrefixReuse& found, const ReuseCircumstances& circumstances) {
  const std::int64_t whole = circumstances.wanted_tokens / kPrefixBlockTokens * kPrefixBlockTokens;
  if (!circumstances.keeps_prefixes) {
    return ReuseLimit::cache_off;
  }
  if (circumstances.is_scored) {
    return ReuseLimit::scored;
  }
  if (whole == 0) {
    return ReuseLimit::prompt_short;
  }
  if (found.tokens == whole) {
    return ReuseLimit::complete;
  }
  if (found.kv_tokens > found.tokens) {
    return found.state_evicted ? ReuseLimit::state_evicted : ReuseLimit::no_state;
  }
  if (found.diverged_at) {
    return ReuseLimit::diverged;
  }
  if (found.salt_known) {
    return ReuseLimit::end_of_stored;
  }
  return circumstances.stores_anything ? ReuseLimit::salt_unknown : ReuseLimit::cache_empty;
}

}  // namespace

PromptReuse explain_reuse(const PrefixReuse& found, const ReuseCircumstances& circumstances) {
  return {.tokens = found.tokens,
          .stored_tokens = found.kv_tokens,
          .limit = limit_of(found, circumstances),
          .diverged_at = found.diverged_at};
}

}  // namespace sluice
