// What `serve` tells clients about the model beside its answers: name, age, fingerprint.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "weights/safetensors.h"

namespace sluice::apps {

// The name of the directory, whatever way it was spelled ("models/tiny/" and "." included).
std::string model_name(const std::filesystem::path& directory);

// Unix seconds of the last change of config.json; 0 when the system does not tell.
std::int64_t model_created(const std::filesystem::path& directory);

// "fp_" and 16 hex digits: equal for the same program version, numerics, config, tokenizer,
// template and weights. Of the weights every tensor's name, dtype, shape and some of its bytes are
// hashed: reading all of a large model would take minutes and tell nothing more in practice.
std::string model_fingerprint(const Checkpoint& checkpoint);

}  // namespace sluice::apps
