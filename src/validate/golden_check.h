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
struct ModelConfig;
}  // namespace sluice

namespace sluice::validate {

// In a model directory: used unless another file is named, made of the weights in bf16.
inline constexpr std::string_view kGoldenFile = "validation_golden.json";

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

// Errors: io, and corrupt_data with the field: no golden file, ids the model does not have, a case
// beyond its context.
Result<Golden> load_golden(const std::filesystem::path& path, const ModelConfig& config);

// Every token is predicted from the stored ones before it, so that each is compared by itself.
// Errors: resource_exhausted.
Result<void> check_golden(Qwen3_5& model, const Golden& golden, Check& check);

}  // namespace sluice::validate
