// Greedy tokens against a stored file (docs/VALIDATION.md has the format).
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "request/request.h"
#include "validate/validation_report.h"

namespace sluice {
class Qwen3_5;
}

namespace sluice::validate {

struct GoldenCase {
  std::vector<TokenId> prompt_ids;
  std::vector<TokenId> greedy_ids;
  // Per greedy token: its logit minus the second best, where it was made. Empty: all are clear.
  std::vector<double> margins;
};

struct Golden {
  std::string model;
  double margin_min = 0.0;  // tokens with a smaller margin are not compared
  std::vector<GoldenCase> cases;
};

// Errors: io, corrupt_data (with the field), invalid_argument (ids the model does not have).
Result<Golden> load_golden(const std::filesystem::path& path, std::int64_t vocab_size);

// Every token is predicted from the stored ones before it, so that each is compared by itself.
// Errors: resource_exhausted.
Result<void> check_golden(Qwen3_5& model, const Golden& golden, Check& check);

}  // namespace sluice::validate
