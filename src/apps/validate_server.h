// The part of `sluice validate` that asks a server: its own one on this machine, or a running one.
#pragma once

#include <filesystem>

#include "apps/validate_options.h"
#include "base/result.h"
#include "validate/check_list.h"

namespace sluice::apps {

// Starts a server for the model, asks it, ends it. Checks that cannot be made say why. Errors: the
// model's files.
Result<void> run_checks_on_child(validate::CheckRun& run, const std::filesystem::path& directory,
                                 const ValidateOptions& options);

// Errors: --url is no address, or nobody answers there.
Result<void> run_checks_on_url(validate::CheckRun& run, const ValidateOptions& options);

}  // namespace sluice::apps
