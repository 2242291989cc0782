// The flags of `sluice validate`.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "apps/options.h"
#include "engine/exactness.h"

namespace sluice::apps {

struct ValidateOptions {
  RuntimeOptions runtime;
  ExactnessOptions exactness;
  std::int64_t memory_mib = 2048;
  std::int64_t long_tokens = 4096;
  bool only_exactness = false;  // the same as --only batch
  bool quick = false;
  bool list = false;
  std::vector<std::string> only;
  std::vector<std::string> skip;
  std::string url;  // of a running server; then no model is loaded here
  std::string api_key;
  std::string golden;
  std::string reference;                    // directory of another model
  std::string reference_text;               // file; empty: made-up sentences
  std::vector<std::int64_t> needle_tokens;  // ascending; empty: the usual ones
  std::vector<std::int64_t> rate_tokens;    // as well
  std::int64_t cache_tokens = 2000;
  std::string json;  // file, "-" for stdout; empty: none
  std::string html;
};

// Ranges are checked while parsing.
void add_validate_options(CLI::App& command, ValidateOptions& options);

// What --quick and the options that stand for others mean.
void apply_defaults(ValidateOptions& options);

}  // namespace sluice::apps
