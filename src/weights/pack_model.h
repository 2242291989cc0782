// Writes a packed model directory (weights/packed_manifest.h) from any model directory. Tensor by
// tensor: memory for the largest packed one. The directory appears when all of it is on disk.
#pragma once

#include <cstddef>
#include <filesystem>
#include <functional>
#include <string>

#include "base/result.h"
#include "platform/thread_pool.h"
#include "weights/model_config.h"
#include "weights/packed_manifest.h"
#include "weights/safetensors.h"

namespace sluice {

struct PackOptions {
  std::filesystem::path out;  // must not exist, or be an empty directory
  WeightPreset preset = WeightPreset::bf16;
  std::string source;  // fingerprint of the checkpoint, kept in the manifest
};

// Called with (bytes written, bytes in all).
using PackProgress = std::function<void(std::size_t, std::size_t)>;

// Returns what was written. Linear weights of the text model are packed; embedding, vectors, MTP
// and vision are copied. Errors: invalid_argument (out is taken, the checkpoint is packed already),
// unsupported (an integer format for too many inputs), those of
// check_tensors() and read_matrix_rows_bf16(), io. Nothing is left behind then.
Result<Manifest> pack_model(const ModelConfig& config, const Checkpoint& checkpoint,
                            const PackOptions& options, ThreadPool& pool,
                            const PackProgress& progress);

}  // namespace sluice
