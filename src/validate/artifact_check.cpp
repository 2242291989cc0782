#include "validate/artifact_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <tuple>
#include <vector>

#include "platform/thread_pool.h"
#include "weights/model_config.h"
#include "weights/packed_model.h"
#include "weights/tensor_registry.h"

namespace sluice::validate {
namespace {

constexpr std::int64_t kBlockValues = std::int64_t{1} << 18;  // read at once, per thread
constexpr std::size_t kTableRows = 12;
// Trained weights have a root mean square of 0.005 to 1 and no value beyond some hundreds.
constexpr double kRmsMax = 100.0;
constexpr double kMatrixRmsMin = 1e-8;
constexpr double kValueMax = 1e5;
constexpr double kFlatRowsMax = 0.1;       // share of an embedding: rows of ids that no text has
constexpr double kPackingErrorMax = 0.35;  // of a matrix; int4 leaves about 0.1

struct Audit {
  const TensorSpec* spec = nullptr;
  std::int64_t values = 0;
  std::int64_t flat_rows = 0;  // all their values are equal
  std::int64_t first_flat_row = -1;
  double square_sum = 0.0;
  double largest = 0.0;                              // magnitude
  std::optional<std::string> broken = std::nullopt;  // why it cannot be read

  double rms() const {
    return values == 0 ? 0.0 : std::sqrt(square_sum / static_cast<double>(values));
  }
  // How far the largest value stands out.
  double peak() const { return rms() > 0 && std::isfinite(rms()) ? largest / rms() : 0.0; }
};

void add_values(Audit& audit, std::span<const float> values) {
  for (const float value : values) {
    const double magnitude = std::abs(static_cast<double>(value));
    audit.square_sum += magnitude * magnitude;
    audit.largest = std::max(audit.largest, magnitude);
  }
  audit.values += static_cast<std::int64_t>(values.size());
}

Result<void> audit_vector(const Checkpoint& checkpoint, Audit& audit) {
  add_values(audit, SLUICE_TRY(read_vector_f32(checkpoint, audit.spec->name)));
  return {};
}

Result<void> audit_matrix(const Checkpoint& checkpoint, Audit& audit) {
  const std::int64_t rows = audit.spec->shape[0];
  const std::int64_t columns = element_count(audit.spec->shape) / rows;
  const std::int64_t block_rows = std::max<std::int64_t>(1, kBlockValues / columns);
  std::vector<bf16_t> block;
  std::vector<float> values;
  for (std::int64_t begin = 0; begin < rows; begin += block_rows) {
    const std::int64_t count = std::min(block_rows, rows - begin);
    block.resize(static_cast<std::size_t>(count * columns));
    SLUICE_TRY(read_matrix_rows_bf16(checkpoint, audit.spec->name, begin, count, block));
    values.resize(block.size());
    std::ranges::transform(block, values.begin(), bf16_to_float);
    add_values(audit, values);
    for (std::int64_t row = 0; row < count; ++row) {
      const auto at = block.begin() + row * columns;
      if (std::all_of(at, at + columns, [&](bf16_t value) { return value == *at; })) {
        ++audit.flat_rows;
        audit.first_flat_row = audit.first_flat_row < 0 ? begin + row : audit.first_flat_row;
      }
    }
  }
  return {};
}

std::vector<Audit> audit_all(const Checkpoint& checkpoint, const std::vector<TensorSpec>& specs,
                             ThreadPool& pool) {
  std::vector<Audit> audits;
  for (const TensorSpec& spec : specs) {
    if (checkpoint.find(spec.name) != nullptr) {  // packed ones, and groups left out, are not there
      audits.push_back({.spec = &spec});
    }
  }
  pool.for_ranges(static_cast<std::int64_t>(audits.size()), 1,
                  [&](std::int64_t begin, std::int64_t end) {
                    for (std::int64_t i = begin; i < end; ++i) {
                      Audit& audit = audits[static_cast<std::size_t>(i)];
                      const Result<void> done = audit.spec->role == TensorRole::vector
                                                    ? audit_vector(checkpoint, audit)
                                                    : audit_matrix(checkpoint, audit);
                      if (!done) {
                        audit.broken = done.error().message;
                      }
                    }
                  });
  return audits;
}

// What is wrong with the values of one tensor; none when nothing is.
std::optional<std::string> judge(const Audit& audit) {
  const TensorSpec& spec = *audit.spec;
  if (audit.broken) {
    return audit.broken;
  }
  const std::string name = fmt::format("tensor {}", spec.name);
  if (audit.largest > kValueMax || audit.rms() > kRmsMax) {
    return fmt::format("{}: values up to {:.3g}, root mean square {:.3g}: no trained weights", name,
                       audit.largest, audit.rms());
  }
  if (spec.role == TensorRole::vector) {
    return std::nullopt;  // norms may well be all zero: they are stored without their one
  }
  if (audit.rms() < kMatrixRmsMin) {
    return fmt::format("{}: all values are zero or nearly so", name);
  }
  const auto rows = static_cast<double>(spec.shape[0]);
  const double flat_max = spec.role == TensorRole::embedding ? kFlatRowsMax * rows : 0.0;
  // A row of one value is a whole row.
  const bool has_columns = element_count(spec.shape) > spec.shape[0];
  if (has_columns && static_cast<double>(audit.flat_rows) > flat_max) {
    return fmt::format("{}: {} of {} rows have the same value throughout, first row {}", name,
                       audit.flat_rows, spec.shape[0], audit.first_flat_row);
  }
  return std::nullopt;
}

void append_audits(std::vector<Audit> audits, Check& check) {
  for (const Audit& audit : audits) {
    if (const std::optional<std::string> wrong = judge(audit)) {
      check.add_finding(*wrong);
    }
  }
  std::ranges::sort(audits, {}, [](const Audit& audit) {
    return std::tuple(!judge(audit).has_value(), -audit.peak(), audit.spec);
  });
  Table table{.columns = {"tensor", "shape", "rms", "largest", "largest/rms", "flat rows"},
              .rows = {}};
  for (const Audit& audit : audits) {
    if (table.rows.size() == kTableRows) {
      break;
    }
    table.rows.push_back({audit.spec->name, to_string(audit.spec->shape),
                          fmt::format("{:.4g}", audit.rms()), fmt::format("{:.4g}", audit.largest),
                          fmt::format("{:.1f}", audit.peak()), std::to_string(audit.flat_rows)});
  }
  check.table = std::move(table);
}

// Of a packed directory: the sums of all bytes, and what packing cost each matrix.
void check_packed(const PackedModel& packed, ThreadPool& pool, Check& check) {
  if (const Result<void> whole = packed.verify(pool); !whole) {
    check.add_finding(whole.error().message);
  }
  double worst = 0.0;
  for (const ManifestTensor& tensor : packed.manifest().tensors) {
    worst = std::max(worst, tensor.error);
    if (!(tensor.error <= kPackingErrorMax)) {
      check.add_finding(fmt::format("tensor {}: packing lost {:.3g} of it, want at most {}",
                                    tensor.name, tensor.error, kPackingErrorMax));
    }
  }
  check.summary += fmt::format("; packed as {}, checksums compared, packing lost {:.3g} at most",
                               to_string(packed.preset()), worst);
}

Result<void> check_files(const std::filesystem::path& directory, ThreadPool& pool, Check& check) {
  const ModelConfig config = SLUICE_TRY(load_model_config(directory));
  const Checkpoint checkpoint = SLUICE_TRY(Checkpoint::open(directory));
  SLUICE_TRY(check_tensors(config, checkpoint));
  const PackedModel* packed = checkpoint.packed();
  const std::vector<TensorSpec> specs =
      list_tensors(config, SLUICE_TRY(text_prefix(checkpoint)), SLUICE_TRY(mtp_prefix(checkpoint)));
  std::vector<Audit> audits = audit_all(checkpoint, specs, pool);
  const std::size_t count = packed == nullptr ? audits.size() : packed->manifest().tensors.size();
  check.counts.push_back({"tensors", static_cast<std::int64_t>(count)});
  check.counts.push_back({"audited", static_cast<std::int64_t>(audits.size())});
  check.summary = fmt::format("{} tensors, {} read value by value", count, audits.size());
  append_audits(std::move(audits), check);
  if (packed != nullptr) {
    check_packed(*packed, pool, check);
  }
  check.summary += fmt::format(", {} wrong", check.finding_count);
  return {};
}

}  // namespace

Result<void> check_artifact(const std::filesystem::path& directory, ThreadPool& pool,
                            Check& check) {
  if (const Result<void> done = check_files(directory, pool, check); !done) {
    check.add_finding(done.error().message);
    check.summary = "the model cannot be opened";
  }
  return {};
}

}  // namespace sluice::validate
