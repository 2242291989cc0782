// The safetensors container: 8-byte little-endian header size, JSON header, raw tensor bytes.
// https://github.com/huggingface/safetensors (format description)
//
// Reading maps the file and checks everything the header claims before any tensor is handed out:
// sizes, offsets in range, no overlap, no hole, dtype known, byte count equal to shape x dtype.
#pragma once

#include <cstddef>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "platform/mapped_file.h"
#include "tensor/tensor_view.h"

namespace sluice {

inline constexpr std::size_t kSafetensorsHeaderBytesMax = 100'000'000;

using TensorMap = std::map<std::string, TensorView, std::less<>>;

// The tensors of one file image. `where` names the file in errors. Errors: corrupt_data with the
// tensor name, the value seen and the limit; unsupported for an unknown dtype.
Result<TensorMap> parse_safetensors(std::span<const std::byte> file, std::string_view where);

// All tensors of a model directory: model.safetensors, or the shards that
// model.safetensors.index.json names. Owns the mappings.
class Checkpoint {
 public:
  static Result<Checkpoint> open(const std::filesystem::path& model_directory);

  // Null when absent.
  const TensorView* find(std::string_view name) const;
  const TensorMap& tensors() const { return tensors_; }
  const std::filesystem::path& directory() const { return directory_; }
  std::size_t file_bytes() const;

 private:
  std::filesystem::path directory_;
  std::vector<MappedFile> files_;
  TensorMap tensors_;
};

// Writes one file atomically (temporary name, fsync, rename). Tensors in map order.
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

  Result<void> append(std::span<const float> rows);  // a whole number of rows
  Result<void> finish();                             // Error unless every row was appended

 private:
  explicit SafetensorsRowWriter(Options options) : options_(std::move(options)) {}

  Options options_;
  int descriptor_ = -1;
  std::int64_t rows_written_ = 0;
};

}  // namespace sluice
