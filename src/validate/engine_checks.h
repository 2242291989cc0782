// The checks of engine/exactness.h as parts of a report: batch and reset.
#pragma once

#include <cstdint>

#include "base/result.h"
#include "engine/exactness.h"
#include "validate/validation_report.h"

namespace sluice::validate {

Result<void> check_batch(Qwen3_5& model, const ExactnessOptions& options,
                         const std::function<void(std::int64_t compared)>& progress, Check& check);

Result<void> check_reset(Qwen3_5& model, std::int64_t long_tokens, std::uint64_t seed,
                         Check& check);

}  // namespace sluice::validate
