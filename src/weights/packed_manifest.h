// What a packed model directory says of itself, sluice.json (docs/FORMATS.md):
//
//   sluice.json      the manifest
//   weights.sluice   tensors one after the other, each at a multiple of 64, in the form they are
//                    computed with (kernels/weight_format.h) or as the model maker had them
//   config.json, tokenizer.json, ...   copied
//
// Text <-> struct, and every check that needs no other file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "tensor/tensor_view.h"
#include "weights/weight_preset.h"

namespace sluice {

inline constexpr std::string_view kManifestFile = "sluice.json";
inline constexpr std::string_view kPackedWeightsFile = "weights.sluice";
inline constexpr std::int64_t kPackedFormatVersion = 1;
inline constexpr std::size_t kManifestBytesMax = std::size_t{64} << 20;
inline constexpr std::size_t kPackedTensorsMax = 1 << 17;
inline constexpr std::size_t kPackedAxesMax = 8;
inline constexpr std::size_t kPackedAlignment = 64;

// One tensor of weights.sluice.
struct ManifestTensor {
  std::string name;
  std::optional<kernels::WeightFormat> packed;  // none: as it was, in `dtype`
  DType dtype = DType::bf16;
  Shape shape;
  std::size_t offset = 0;
  std::size_t bytes = 0;
  std::uint32_t crc32 = 0;
  double error = 0.0;  // of packing: root of sum((packed - w)^2) / sum(w^2)
};

struct Manifest {
  WeightPreset preset = WeightPreset::bf16;
  std::string source;              // fingerprint of what was packed
  std::uint32_t config_crc32 = 0;  // of config.json
  std::size_t weight_bytes = 0;    // size of weights.sluice
  std::vector<ManifestTensor> tensors;
};

std::string to_json(const Manifest& manifest);

// `where` names the file in errors. Errors: corrupt_data (not a manifest; a field missing or out of
// range; tensors that overlap, are misaligned or of a size that their shape contradicts),
// unsupported (another format or numerics version, a preset this version cannot run).
Result<Manifest> parse_manifest(std::string_view text, std::string_view where);

// Bytes that a tensor of this format or dtype and shape takes; none when it is no valid shape.
std::optional<std::size_t> manifest_bytes(const ManifestTensor& tensor);

}  // namespace sluice
