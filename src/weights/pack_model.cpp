#include "weights/pack_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <system_error>
#include <utility>
#include <vector>

#include "kernels/weight_format.h"
#include "platform/aligned_buffer.h"
#include "platform/atomic_directory.h"
#include "platform/atomic_file.h"
#include "weights/matrix_rows.h"
#include "weights/packed_model.h"
#include "weights/tensor_registry.h"

namespace sluice {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kScaleSuffix = "_scale_inv";

// Whatever says how the model reads and writes text, sees pictures and stops.
constexpr std::array<std::string_view, 13> kCopiedFiles{"config.json",
                                                        "generation_config.json",
                                                        "tokenizer.json",
                                                        "tokenizer_config.json",
                                                        "special_tokens_map.json",
                                                        "added_tokens.json",
                                                        "vocab.json",
                                                        "merges.txt",
                                                        "chat_template.jinja",
                                                        "chat_template.json",
                                                        "preprocessor_config.json",
                                                        "processor_config.json",
                                                        "video_preprocessor_config.json"};

struct SquareSums {
  double error = 0.0;
  double weight = 0.0;
};

// Adds what packing did to `count` rows from `row` on.
void add_error(const ManifestTensor& tensor, const std::byte* packed, std::int64_t row,
               std::span<const bf16_t> rows, SquareSums& sums) {
  const std::int64_t k = tensor.shape[1];
  std::vector<float> back(static_cast<std::size_t>(k));
  for (std::size_t begin = 0; begin < rows.size(); begin += back.size(), ++row) {
    kernels::unpack_weight_row(*tensor.packed, packed, row, k, back.data());
    for (std::size_t i = 0; i < back.size(); ++i) {
      const double exact = bf16_to_float(rows[begin + i]);
      const double error = static_cast<double>(back[i]) - exact;
      sums.error += error * error;
      sums.weight += exact * exact;
    }
  }
}

// One tensor in the form that is written; sets its error.
Result<AlignedBuffer> pack_tensor(const Checkpoint& checkpoint, ManifestTensor& tensor,
                                  ThreadPool& pool) {
  const std::int64_t rows = tensor.shape[0];
  const std::int64_t columns = tensor.shape[1];
  AlignedBuffer packed = SLUICE_TRY(AlignedBuffer::allocate(tensor.bytes));
  const std::int64_t at_once = kernels::rows_packed_at_once(*tensor.packed);
  const std::int64_t batches = (rows + at_once - 1) / at_once;
  std::vector<SquareSums> sums(static_cast<std::size_t>(batches));
  std::mutex error_mutex;
  std::optional<Error> first_error;
  pool.for_ranges(batches, 1, [&](std::int64_t begin, std::int64_t end) {
    MatrixRows source(checkpoint, tensor.name, *tensor.packed, columns);
    for (std::int64_t batch = begin; batch < end; ++batch) {
      const std::int64_t row = batch * at_once;
      const std::int64_t count = std::min(at_once, rows - row);
      const Result<void> read = source.read(row, count);
      if (!read) {
        const std::scoped_lock lock(error_mutex);
        first_error = read.error();
        return;
      }
      kernels::pack_weight_rows(*tensor.packed, source.rows(), row, count, columns, packed.data());
      add_error(tensor, packed.data(), row, source.values(), sums[static_cast<std::size_t>(batch)]);
    }
  });
  if (first_error) {
    return std::unexpected(*first_error);
  }
  SquareSums all;
  for (const SquareSums& part : sums) {  // in order: the same figure for any number of threads
    all.error += part.error;
    all.weight += part.weight;
  }
  tensor.error = all.weight == 0.0 ? 0.0 : std::sqrt(all.error / all.weight);
  return packed;
}

// What goes where, in the order of the registry; bytes and offsets set.
Result<Manifest> plan(const ModelConfig& config, const Checkpoint& checkpoint,
                      WeightPreset preset) {
  const std::string prefix = SLUICE_TRY(text_prefix(checkpoint));
  const std::string mtp = SLUICE_TRY(mtp_prefix(checkpoint));
  Manifest manifest;
  manifest.preset = preset;
  std::set<std::string, std::less<>> packed_names;
  for (const TensorSpec& spec : list_tensors(config, prefix, mtp)) {
    if (spec.group != TensorGroup::text) {
      continue;
    }
    const bool tied_head = spec.role == TensorRole::embedding && config.tie_word_embeddings;
    if (spec.role == TensorRole::matrix || tied_head) {
      const kernels::WeightFormat format = weight_format(preset, spec.name);
      if (kernels::is_integer(format) && spec.shape[1] > kernels::kIntProductKMax) {
        return fail(
            ErrorCode::unsupported,
            fmt::format("tensor {}: {} inputs, {} takes at most {}", spec.name, spec.shape[1],
                        kernels::to_string(format), kernels::kIntProductKMax));
      }
      manifest.tensors.push_back({.name = spec.name, .packed = format, .shape = spec.shape});
      if (!tied_head) {
        packed_names.insert(spec.name);
      }
    }
  }
  for (const auto& [name, view] : checkpoint.tensors()) {
    const bool scale = name.ends_with(kScaleSuffix) &&
                       packed_names.contains(name.substr(0, name.size() - kScaleSuffix.size()));
    const bool second_head = name == "lm_head.weight" && config.tie_word_embeddings;
    if (!packed_names.contains(name) && !scale && !second_head) {
      manifest.tensors.push_back(
          {.name = name, .packed = std::nullopt, .dtype = view.dtype, .shape = view.shape});
    }
  }
  std::size_t end = 0;
  for (ManifestTensor& tensor : manifest.tensors) {
    tensor.bytes = manifest_bytes(tensor).value_or(0);
    tensor.offset = (end + kPackedAlignment - 1) / kPackedAlignment * kPackedAlignment;
    end = tensor.offset + tensor.bytes;
  }
  manifest.weight_bytes = end;
  return manifest;
}

Result<void> write_weights(const Checkpoint& checkpoint, Manifest& manifest, const fs::path& path,
                           ThreadPool& pool, const PackProgress& progress) {
  const std::unique_ptr<AtomicFile> file = SLUICE_TRY(AtomicFile::create(path));
  constexpr std::array<std::byte, kPackedAlignment> kPadding{};
  std::size_t written = 0;
  for (ManifestTensor& tensor : manifest.tensors) {
    SLUICE_TRY(file->write(std::span(kPadding).first(tensor.offset - written)));
    AlignedBuffer packed;
    std::span<const std::byte> bytes;
    if (tensor.packed) {
      packed = SLUICE_TRY(pack_tensor(checkpoint, tensor, pool));
      bytes = {packed.data(), packed.size()};
    } else {
      bytes = checkpoint.find(tensor.name)->bytes;
    }
    tensor.crc32 = checksum(bytes, pool);
    SLUICE_TRY(file->write(bytes));
    written = tensor.offset + tensor.bytes;
    if (progress) {
      progress(written, manifest.weight_bytes);
    }
  }
  return file->commit();
}

Result<void> write_small(const fs::path& path, std::span<const std::byte> bytes) {
  const std::unique_ptr<AtomicFile> file = SLUICE_TRY(AtomicFile::create(path));
  SLUICE_TRY(file->write(bytes));
  return file->commit();
}

Result<void> copy_files(const fs::path& from, const fs::path& to) {
  for (const std::string_view name : kCopiedFiles) {
    std::error_code ignored;
    if (fs::exists(from / name, ignored)) {
      const MappedFile file = SLUICE_TRY(MappedFile::open(from / name));
      SLUICE_TRY(write_small(to / name, file.bytes()));
    }
  }
  return {};
}

}  // namespace

Result<Manifest> pack_model(const ModelConfig& config, const Checkpoint& checkpoint,
                            const PackOptions& options, ThreadPool& pool,
                            const PackProgress& progress) {
  if (checkpoint.packed() != nullptr) {
    return fail(
        ErrorCode::invalid_argument,
        fmt::format("{} is packed already, as {}; pack the model it was made from",
                    checkpoint.directory().string(), to_string(checkpoint.packed()->preset())));
  }
  SLUICE_TRY(check_tensors(config, checkpoint));
  Manifest manifest = SLUICE_TRY(plan(config, checkpoint, options.preset));
  manifest.source = options.source;
  const auto directory = SLUICE_TRY(AtomicDirectory::create(options.out));
  SLUICE_TRY(copy_files(checkpoint.directory(), directory->path()));
  const MappedFile kept = SLUICE_TRY(MappedFile::open(directory->path() / "config.json"));
  manifest.config_crc32 = checksum(kept.bytes());
  SLUICE_TRY(
      write_weights(checkpoint, manifest, directory->path() / kPackedWeightsFile, pool, progress));
  const std::string text = to_json(manifest);
  SLUICE_TRY(write_small(directory->path() / kManifestFile,
                         std::as_bytes(std::span(text.data(), text.size()))));
  SLUICE_TRY(directory->commit());
  return manifest;
}

}  // namespace sluice
