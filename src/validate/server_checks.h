// The checks that ask a server: needles, cache, rates, gaps. What only Sluice promises (how much of
// a prompt is reused) is required of Sluice alone.
#pragma once

#include <cstdint>
#include <vector>

#include "base/result.h"
#include "validate/asked_server.h"
#include "validate/validation_report.h"

namespace sluice::validate {

struct ServerCheckOptions {
  double bytes_per_token = 4.0;  // FillerText::measure()
  std::uint64_t seed = 1;
  std::int64_t cache_tokens = 2000;       // of the shared beginnings in check_cache
  std::vector<std::int64_t> rate_tokens;  // prompts of check_rates, ascending; not empty
  bool quick = false;
};

// Errors of all: the server refused, or hung up.

// Facts in texts of these lengths, ascending; those beyond the context are left out.
Result<void> check_needles(AskedServer& server, const ServerCheckOptions& options,
                           const std::vector<std::int64_t>& lengths, Check& check);

Result<void> check_cache(AskedServer& server, const ServerCheckOptions& options, Check& check);

// Tokens of context that check_cache needs for beginnings of `tokens`.
std::int64_t cache_context(std::int64_t tokens);

// Adds the plots to the report, too.
Result<void> check_rates(AskedServer& server, const ServerCheckOptions& options, Check& check,
                         std::vector<Plot>& plots, std::vector<StackedBar>& bars);

// The times between the tokens of a running answer: alone, and while prompts of rate_tokens are
// read.
Result<void> check_gaps(AskedServer& server, const ServerCheckOptions& options, Check& check);

}  // namespace sluice::validate
