// Is the model on disk whole and plausible? Opens the directory itself, so that a broken one is
// something found and not the end.
#pragma once

#include <filesystem>

#include "base/result.h"
#include "validate/validation_report.h"

namespace sluice {
class ThreadPool;
}

namespace sluice::validate {

// Everything that is wrong becomes a finding. Reads all weights once.
Result<void> check_artifact(const std::filesystem::path& directory, ThreadPool& pool, Check& check);

}  // namespace sluice::validate
