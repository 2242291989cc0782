// The part of `sluice validate` that compares with a second model: which one, and on what text.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "apps/model_loader.h"
#include "apps/validate_options.h"
#include "base/result.h"
#include "text/tokenizer.h"
#include "validate/check_list.h"
#include "weights/model_config.h"

namespace sluice::apps {

// What --reference and --reference-text name, read before any weights are.
struct ReferencePlan {
  std::filesystem::path directory;
  ModelConfig config;
  Tokenizer tokenizer;
  std::string text_name;
  std::vector<TokenId> token_ids;  // two at least
};

// None without --reference. `directory` and `config` are those of the model. Errors: files that
// cannot be read, and invalid_argument: a text that is too short, or models whose tokens are not
// the same.
Result<std::optional<ReferencePlan>> plan_reference(const ValidateOptions& options,
                                                    const std::filesystem::path& directory,
                                                    const ModelConfig& config);

// Loads the reference and compares. Skips where memory is missing. Errors: those of loading.
Result<void> run_reference_check(const ReferencePlan& plan, LoadedModel& loaded, bool quiet,
                                 validate::Check& check);

}  // namespace sluice::apps
