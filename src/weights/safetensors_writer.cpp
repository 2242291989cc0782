// The writing half of safetensors.h.
#include <fmt/format.h>

#include <utility>

#include "base/checked_math.h"
#include "platform/atomic_file.h"
#include "weights/safetensors.h"
#include "weights/safetensors_header.h"
#include "weights/strict_json.h"

namespace sluice {
namespace {

std::span<const std::byte> bytes_of(const std::string& text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

}  // namespace

Result<void> write_safetensors(const std::filesystem::path& path, const TensorMap& tensors) {
  SafetensorsHeader header;
  std::uint64_t offset = 0;
  for (const auto& [name, view] : tensors) {
    const std::uint64_t end = offset + view.bytes.size();
    header.emplace(
        name, HeaderEntry{.dtype = view.dtype, .shape = view.shape, .begin = offset, .end = end});
    offset = end;
  }
  const std::string head = SLUICE_TRY(make_safetensors_header(header));
  const std::unique_ptr<AtomicFile> file = SLUICE_TRY(AtomicFile::create(path));
  SLUICE_TRY(file->write(bytes_of(head)));
  for (const auto& [name, view] : tensors) {
    SLUICE_TRY(file->write(view.bytes));
  }
  return file->commit();
}

SafetensorsRowWriter::SafetensorsRowWriter(Options options, std::unique_ptr<AtomicFile> file)
    : options_(std::move(options)), file_(std::move(file)) {}
SafetensorsRowWriter::SafetensorsRowWriter(SafetensorsRowWriter&&) noexcept = default;
SafetensorsRowWriter& SafetensorsRowWriter::operator=(SafetensorsRowWriter&&) noexcept = default;
SafetensorsRowWriter::~SafetensorsRowWriter() = default;

Result<SafetensorsRowWriter> SafetensorsRowWriter::create(const Options& options) {
  const Shape shape{options.rows, options.columns};
  const std::optional<std::int64_t> count = checked_mul(options.rows, options.columns);
  const std::optional<std::int64_t> bytes =
      count ? checked_mul<std::int64_t>(*count, sizeof(float)) : std::nullopt;
  if (options.rows < 0 || options.columns < 0 || !bytes) {
    return fail(ErrorCode::invalid_argument,
                fmt::format("tensor {}: shape {} is not one a file can hold",
                            printable(options.tensor_name), to_string(shape)));
  }
  SafetensorsHeader header;
  header.emplace(options.tensor_name, HeaderEntry{.dtype = DType::f32,
                                                  .shape = shape,
                                                  .begin = 0,
                                                  .end = static_cast<std::uint64_t>(*bytes)});
  const std::string head = SLUICE_TRY(make_safetensors_header(header));
  std::unique_ptr<AtomicFile> file = SLUICE_TRY(AtomicFile::create(options.path));
  SLUICE_TRY(file->write(bytes_of(head)));
  return SafetensorsRowWriter(options, std::move(file));
}

Result<void> SafetensorsRowWriter::append(std::span<const float> rows) {
  if (!file_) {
    return fail(ErrorCode::invalid_argument,
                fmt::format("{} is finished or failed", options_.path.string()));
  }
  const auto count = static_cast<std::int64_t>(rows.size());
  const std::int64_t whole = options_.columns == 0 ? 0 : count / options_.columns;
  if (whole * options_.columns != count || whole > options_.rows - rows_written_) {
    return fail(ErrorCode::invalid_argument,
                fmt::format("tensor {}: {} more values after row {}, want whole rows of [{}, {}]",
                            printable(options_.tensor_name), count, rows_written_, options_.rows,
                            options_.columns));
  }
  if (Result<void> written = file_->write(std::as_bytes(rows)); !written) {
    file_.reset();
    return written;
  }
  rows_written_ += whole;
  return {};
}

Result<void> SafetensorsRowWriter::finish() {
  if (!file_) {
    return fail(ErrorCode::invalid_argument,
                fmt::format("{} is finished or failed", options_.path.string()));
  }
  if (options_.columns > 0 && rows_written_ != options_.rows) {
    return fail(ErrorCode::invalid_argument,
                fmt::format("tensor {}: {} rows written, want {}", printable(options_.tensor_name),
                            rows_written_, options_.rows));
  }
  const std::unique_ptr<AtomicFile> file = std::exchange(file_, nullptr);
  return file->commit();
}

}  // namespace sluice
