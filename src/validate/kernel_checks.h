// Checks of the model alone: kernel sets against each other (isa), a prompt whole against the same
// in pieces (cuts).
#pragma once

#include <cstdint>

#include "base/result.h"
#include "validate/validation_report.h"

namespace sluice {
class Checkpoint;
class Qwen3_5;
class ThreadPool;
namespace kernels {
struct KernelTable;
}
}  // namespace sluice

namespace sluice::validate {

// A model that is loaded, and what another one is loaded from. All outlive the check.
struct LoadedParts {
  Qwen3_5& model;
  const Checkpoint& checkpoint;
  const kernels::KernelTable& table;  // of `model`
  ThreadPool& pool;
};

// Loads the model once more per kernel set; a set is left out where memory or patience do not
// suffice, and the table says so. Errors: those of loading.
Result<void> check_isa(const LoadedParts& parts, std::uint64_t seed, Check& check);

// Error resource_exhausted: no memory.
Result<void> check_cuts(Qwen3_5& model, std::int64_t prompt_tokens, std::uint64_t seed,
                        Check& check);

}  // namespace sluice::validate
