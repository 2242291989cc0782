// The weights of a packed model directory (weights/packed_manifest.h), mapped. Owns the mapping;
// views live as long as the object. Any thread may read.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"
#include "platform/mapped_file.h"
#include "platform/thread_pool.h"
#include "weights/packed_manifest.h"
#include "weights/safetensors.h"

namespace sluice {

// A linear weight as kernels read it.
struct PackedTensor {
  kernels::WeightFormat format = kernels::WeightFormat::bf16;
  Shape shape;  // [out_features, in_features]
  std::span<const std::byte> bytes;
};

class PackedModel {
 public:
  // Whether there is a manifest in the directory.
  static bool is_there(const std::filesystem::path& directory);

  // Reads the manifest and maps the weights; reads none of them. Errors of parse_manifest();
  // corrupt_data when the file is shorter or longer than the manifest says, or config.json is not
  // the one that was packed.
  static Result<std::shared_ptr<const PackedModel>> open(const std::filesystem::path& directory);

  WeightPreset preset() const { return manifest_.preset; }
  const Manifest& manifest() const { return manifest_; }
  std::size_t file_bytes() const { return file_.bytes().size(); }

  // Linear weights by name; a tied head has the name of the embedding. Null when absent.
  const PackedTensor* find(std::string_view name) const;
  const std::map<std::string, PackedTensor, std::less<>>& tensors() const { return packed_; }
  // Everything else, as the model maker had it.
  TensorMap plain_tensors() const;

  // Reads every byte and compares the checksums. Error corrupt_data with the first tensor, in the
  // order of the file, whose bytes are not those that were written.
  Result<void> verify(ThreadPool& pool) const;

 private:
  PackedModel(Manifest manifest, MappedFile file, std::string where);

  Manifest manifest_;
  MappedFile file_;
  std::string where_;  // of the weights
  std::map<std::string, PackedTensor, std::less<>> packed_;
};

// The preset to run with: the wanted one, or the one of a packed directory, or bf16. Error
// invalid_argument when the directory is packed as another than the wanted one.
Result<WeightPreset> resolve_preset(std::optional<WeightPreset> wanted,
                                    const Checkpoint& checkpoint);

// CRC-32 (zlib's) of bytes of any size.
std::uint32_t checksum(std::span<const std::byte> bytes);
// The same, computed by all workers together.
std::uint32_t checksum(std::span<const std::byte> bytes, ThreadPool& pool);

}  // namespace sluice
