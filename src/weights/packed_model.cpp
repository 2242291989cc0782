#include "weights/packed_model.h"

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <system_error>
#include <utility>
#include <vector>

#include "weights/model_config.h"
#include "weights/strict_json.h"

namespace sluice {
namespace {

constexpr std::size_t kChunkBytes = std::size_t{4} << 20;  // of a checksum in parallel

std::span<const std::byte> chunk_of(std::span<const std::byte> bytes, std::int64_t index) {
  const std::size_t begin = static_cast<std::size_t>(index) * kChunkBytes;
  return bytes.subspan(begin, std::min(kChunkBytes, bytes.size() - begin));
}

}  // namespace

std::uint32_t checksum(std::span<const std::byte> bytes) {
  return static_cast<std::uint32_t>(
      crc32_z(0, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size()));
}

std::uint32_t checksum(std::span<const std::byte> bytes, ThreadPool& pool) {
  const std::size_t chunks = (bytes.size() + kChunkBytes - 1) / kChunkBytes;
  std::vector<std::uint32_t> parts(chunks);
  pool.for_ranges(static_cast<std::int64_t>(chunks), 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      parts[static_cast<std::size_t>(i)] = checksum(chunk_of(bytes, i));
    }
  });
  uLong whole = crc32_z(0, nullptr, 0);
  for (std::size_t i = 0; i < chunks; ++i) {
    const auto size = chunk_of(bytes, static_cast<std::int64_t>(i)).size();
    whole = crc32_combine(whole, parts[i], static_cast<z_off_t>(size));
  }
  return static_cast<std::uint32_t>(whole);
}

Result<WeightPreset> resolve_preset(std::optional<WeightPreset> wanted,
                                    const Checkpoint& checkpoint) {
  if (checkpoint.packed() == nullptr) {
    return wanted.value_or(WeightPreset::bf16);
  }
  const WeightPreset packed = checkpoint.packed()->preset();
  if (wanted && *wanted != packed) {
    return fail(ErrorCode::invalid_argument,
                fmt::format("preset {}: {} is packed as {}", to_string(*wanted),
                            checkpoint.directory().string(), to_string(packed)));
  }
  return packed;
}

bool PackedModel::is_there(const std::filesystem::path& directory) {
  std::error_code ignored;
  return std::filesystem::exists(directory / kManifestFile, ignored);
}

Result<std::shared_ptr<const PackedModel>> PackedModel::open(
    const std::filesystem::path& directory) {
  const std::filesystem::path manifest_path = directory / kManifestFile;
  const std::string text = SLUICE_TRY(read_text_file(manifest_path, kManifestBytesMax));
  Manifest manifest = SLUICE_TRY(parse_manifest(text, manifest_path.string()));
  const MappedFile config = SLUICE_TRY(MappedFile::open(directory / "config.json"));
  if (checksum(config.bytes()) != manifest.config_crc32) {
    const std::string where = (directory / "config.json").string();
    return fail(
        ErrorCode::corrupt_data,
        fmt::format("{} is not the one that {} was packed with", where, manifest_path.string()),
        where);
  }
  const std::string where = (directory / kPackedWeightsFile).string();
  MappedFile file = SLUICE_TRY(MappedFile::open(directory / kPackedWeightsFile));
  if (file.bytes().size() != manifest.weight_bytes) {
    return fail(ErrorCode::corrupt_data,
                fmt::format("{} has {} bytes, {} says {} (truncated?)", where, file.bytes().size(),
                            kManifestFile, manifest.weight_bytes),
                where);
  }
  return std::shared_ptr<const PackedModel>(
      new PackedModel(std::move(manifest), std::move(file), where));
}

PackedModel::PackedModel(Manifest manifest, MappedFile file, std::string where)
    : manifest_(std::move(manifest)), file_(std::move(file)), where_(std::move(where)) {
  for (const ManifestTensor& tensor : manifest_.tensors) {
    if (tensor.packed) {
      packed_.emplace(tensor.name,
                      PackedTensor{.format = *tensor.packed,
                                   .shape = tensor.shape,
                                   .bytes = file_.bytes().subspan(tensor.offset, tensor.bytes)});
    }
  }
}

const PackedTensor* PackedModel::find(std::string_view name) const {
  const auto position = packed_.find(name);
  return position == packed_.end() ? nullptr : &position->second;
}

TensorMap PackedModel::plain_tensors() const {
  TensorMap tensors;
  for (const ManifestTensor& tensor : manifest_.tensors) {
    if (!tensor.packed) {
      tensors.emplace(tensor.name,
                      TensorView{.dtype = tensor.dtype,
                                 .shape = tensor.shape,
                                 .bytes = file_.bytes().subspan(tensor.offset, tensor.bytes)});
    }
  }
  return tensors;
}

Result<void> PackedModel::verify(ThreadPool& pool) const {
  for (const ManifestTensor& tensor : manifest_.tensors) {
    const std::uint32_t found = checksum(file_.bytes().subspan(tensor.offset, tensor.bytes), pool);
    if (found != tensor.crc32) {
      return fail(ErrorCode::corrupt_data,
                  fmt::format("{}: tensor {}: checksum {:08x}, want {:08x}: the file is damaged, "
                              "pack the model again",
                              where_, printable(tensor.name), found, tensor.crc32),
                  where_);
    }
  }
  return {};
}

}  // namespace sluice
