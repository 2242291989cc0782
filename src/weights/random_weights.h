// Weights of a model that nobody trained, in memory: for measurements. Every tensor is a window
// into a few MiB of normal numbers that repeat, so a model of any size takes no memory until it is
// packed. Computing takes the time it takes with real weights; the answers are noise.
#pragma once

#include <cstdint>
#include <vector>

#include "base/result.h"
#include "tensor/scalar.h"
#include "weights/model_config.h"
#include "weights/safetensors.h"

namespace sluice {

// All text tensors of the config, bf16, with standard deviation 0.02 (how such models begin their
// training: activations stay in range at any size). Deterministic. Error resource_exhausted.
Result<Checkpoint> make_random_checkpoint(const ModelConfig& config);

// count normal numbers, rounded to bf16; the same for the same seed.
std::vector<bf16_t> random_bf16(std::size_t count, float deviation, std::uint64_t seed);

}  // namespace sluice
