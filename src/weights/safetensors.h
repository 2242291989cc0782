// The safetensors container: 8-byte little-endian header size, JSON header, raw tensor bytes.
// https://github.com/huggingface/safetensors (format description)
//
// Reading maps the file and checks everything the header claims before any tensor is handed out:
// sizes, offsets in range, no overlap, no hole, dtype known, byte count equal to shape x dtype.
//
// The format does not align tensors: a header of odd length shifts all data. Read elements of these
// views with memcpy (or tensor_registry.h), never through a typed pointer.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "platform/mapped_file.h"
#include "platform/repeated_mapping.h"
#include "tensor/tensor_view.h"

namespace sluice {

inline constexpr std::size_t kSafetensorsHeaderBytesMax = 100'000'000;
inline constexpr std::size_t kShardIndexBytesMax = std::size_t{16} << 20;
inline constexpr std::size_t kShardsMax = 4096;

class AtomicFile;
class PackedModel;

using TensorMap = std::map<std::string, TensorView, std::less<>>;

// The tensors of one file image. `where` names the file in errors. Errors: corrupt_data with the
// tensor name, the value seen and the limit; unsupported for an unknown dtype.
Result<TensorMap> parse_safetensors(std::span<const std::byte> file, std::string_view where);

// All tensors of a model directory: model.safetensors, or the shards that
// model.safetensors.index.json names; or a packed model, whose linear weights are packed() and not
// in tensors(); or tensors without files. Owns the mappings; may be read from
// any thread.
class Checkpoint {
 public:
  // The index and the shards must agree on every tensor, in both directions, and shards are plain
  // file names in the directory. A model.safetensors beside an index that does not name it is an
  // Error: nobody can tell which of the two is meant.
  static Result<Checkpoint> open(const std::filesystem::path& model_directory);

  // Tensors that are in no file (weights/random_weights.h): views into `memory`.
  static Checkpoint in_memory(TensorMap tensors, RepeatedMapping memory);

  // Null when absent.
  const TensorView* find(std::string_view name) const;
  const TensorMap& tensors() const { return tensors_; }
  // Null when the directory is not packed.
  const PackedModel* packed() const { return packed_.get(); }
  const std::filesystem::path& directory() const { return directory_; }  // empty: no files
  std::size_t file_bytes() const;

 private:
  Result<void> open_index(const std::filesystem::path& index);
  Result<TensorMap> map_file(const std::filesystem::path& path);

  std::filesystem::path directory_;
  std::vector<MappedFile> files_;
  RepeatedMapping memory_;
  std::shared_ptr<const PackedModel> packed_;
  TensorMap tensors_;
};

// Writes one file atomically (temporary name, fsync, rename). Tensors in map order. An existing
// regular file is replaced; anything else under that name is an Error. Errors: invalid_argument (a
// view whose bytes do not match its shape, a bad name), io (refused, disk full); nothing is left
// behind then.
Result<void> write_safetensors(const std::filesystem::path& path, const TensorMap& tensors);

// Writes a file of one fp32 tensor [rows, columns] piece by piece, for results larger than memory.
// The file appears under its name only when finish() succeeds.
class SafetensorsRowWriter {
 public:
  struct Options {
    std::filesystem::path path;
    std::string tensor_name;
    std::int64_t rows = 0;
    std::int64_t columns = 0;
  };
  static Result<SafetensorsRowWriter> create(const Options& options);
  SafetensorsRowWriter(SafetensorsRowWriter&& other) noexcept;
  SafetensorsRowWriter& operator=(SafetensorsRowWriter&& other) noexcept;
  ~SafetensorsRowWriter();  // removes an unfinished file

  // A whole number of rows. After an io Error the file is gone and every call is an Error.
  Result<void> append(std::span<const float> rows);
  Result<void> finish();  // Error unless every row was appended

 private:
  SafetensorsRowWriter(Options options, std::unique_ptr<AtomicFile> file);

  Options options_;
  std::unique_ptr<AtomicFile> file_;  // null once finished or failed
  std::int64_t rows_written_ = 0;
};

}  // namespace sluice
