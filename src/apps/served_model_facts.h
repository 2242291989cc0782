// What `serve` tells clients about the model beside its answers: name, age, fingerprint.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

#include "engine/engine.h"
#include "weights/safetensors.h"

namespace sluice::apps {

// The name of the directory, whatever way it was spelled ("models/tiny/" and "." included).
std::string model_name(const std::filesystem::path& directory);

// Unix seconds of the last change of config.json; 0 when the system does not tell.
std::int64_t model_created(const std::filesystem::path& directory);

// "fp_" and 16 hex digits: equal for the same program version, numerics, config, tokenizer,
// template, weights and their preset. Of the weights every tensor's name, dtype, shape and some of
// its bytes are hashed: reading all of a large model would take minutes and tell nothing more in
// practice.
std::string model_fingerprint(const Checkpoint& checkpoint, WeightPreset preset);

// What the bytes of computed prefixes depend on, each part with a name of its own: weights
// (config.json, preset, and of every tensor what model_fingerprint() takes), tokenizer, chat
// template, version of the numerics, kernels. Kernels compute the same bits, but a broken one that
// is off now must not go on through what it left. A change of weights that spares name, shape and
// the sampled bytes of every tensor is not seen.
CacheIdentity cache_identity(const Checkpoint& checkpoint, WeightPreset preset,
                             std::string_view kernels);

}  // namespace sluice::apps
