// The checks that ask a server: needles, cache, rates. What only Sluice promises (how much of a
// prompt is reused) is required of Sluice alone.
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
  bool quick = false;
};

// Errors of all: the server refused, or hung up.

// Facts in texts of these lengths, ascending; those beyond the context are left out.
Result<void> check_needles(AskedServer& server, const ServerCheckOptions& options,
                           const std::vector<std::int64_t>& lengths, Check& check);

Result<void> check_cache(AskedServer& server, const ServerCheckOptions& options, Check& check);

// Adds the plots to the report, too.
Result<void> check_rates(AskedServer& server, const ServerCheckOptions& options, Check& check,
                         std::vector<Plot>& plots, std::vector<StackedBar>& bars);

}  // namespace sluice::validate
