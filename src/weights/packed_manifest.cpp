#include "weights/packed_manifest.h"

#include <fmt/format.h>

#include <boost/json.hpp>
#include <set>
#include <utility>

#include "base/checked_math.h"
#include "kernels/layout.h"
#include "weights/model_config.h"
#include "weights/strict_json.h"

namespace sluice {
namespace {

namespace json = boost::json;

constexpr std::string_view kKind = "sluice-packed-model";
constexpr std::int64_t kAxisMax = std::int64_t{1} << 40;

// Fields of one JSON object; the first that is wrong is remembered.
class Fields {
 public:
  Fields(const json::object& object, std::string_view where, std::string path)
      : object_(object), where_(where), path_(std::move(path)) {}

  std::uint64_t number(std::string_view key, std::uint64_t max) {
    const json::value* value = find(key);
    const bool signed_ok = value != nullptr && value->is_int64() && value->get_int64() >= 0;
    const bool fits = value != nullptr && (signed_ok || value->is_uint64());
    const std::uint64_t found = !fits       ? 0
                                : signed_ok ? static_cast<std::uint64_t>(value->get_int64())
                                            : value->get_uint64();
    if (!fits || found > max) {
      reject(key, fmt::format("want an integer from 0 to {}", max));
      return 0;
    }
    return found;
  }
  std::string text(std::string_view key) {
    const json::value* value = find(key);
    if (value == nullptr || !value->is_string()) {
      reject(key, "want a string");
      return {};
    }
    return std::string(std::string_view(value->get_string()));
  }
  double real(std::string_view key) {
    const json::value* value = find(key);
    if (value == nullptr || !value->is_number()) {
      reject(key, "want a number");
      return 0.0;
    }
    return value->to_number<double>();
  }
  const json::array& array(std::string_view key) {
    static const json::array kNone;
    const json::value* value = find(key);
    if (value == nullptr || !value->is_array()) {
      reject(key, "want an array");
      return kNone;
    }
    return value->get_array();
  }
  void reject(std::string_view key, std::string_view reason,
              ErrorCode code = ErrorCode::corrupt_data) {
    if (!error_) {
      error_ = Error{.code = code,
                     .message = fmt::format("{}: {}{}: {}", where_, path_, key, reason),
                     .where = std::string(where_)};
    }
  }
  Result<void> result() const {
    if (error_) {
      return std::unexpected(*error_);
    }
    return {};
  }

 private:
  const json::value* find(std::string_view key) const { return object_.if_contains(key); }

  const json::object& object_;
  std::string_view where_;
  std::string path_;
  std::optional<Error> error_;
};

Shape read_shape(Fields& fields) {
  Shape shape;
  const json::array& axes = fields.array("shape");
  if (axes.size() > kPackedAxesMax) {
    fields.reject("shape", fmt::format("{} axes, the limit is {}", axes.size(), kPackedAxesMax));
    return shape;
  }
  for (const json::value& axis : axes) {
    if (!axis.is_int64() || axis.get_int64() < 1 || axis.get_int64() > kAxisMax) {
      fields.reject("shape", "want axes of 1 or more");
      return shape;
    }
    shape.push_back(axis.get_int64());
  }
  return shape;
}

Result<ManifestTensor> read_tensor(const json::value& value, std::size_t index,
                                   std::string_view where) {
  if (!value.is_object()) {
    return fail(ErrorCode::corrupt_data,
                fmt::format("{}: tensors[{}]: want an object", where, index), std::string(where));
  }
  Fields fields(value.get_object(), where, fmt::format("tensors[{}].", index));
  constexpr std::uint64_t kBytesMax = std::uint64_t{1} << 50;
  ManifestTensor tensor;
  tensor.name = fields.text("name");
  const std::string form = fields.text("form");
  tensor.packed = kernels::weight_format_from_name(form);
  const std::optional<DType> dtype = dtype_from_name(form);
  if (!tensor.packed && !dtype) {
    fields.reject("form", fmt::format("\"{}\" is unknown", printable(form)));
  }
  tensor.dtype = dtype.value_or(DType::bf16);
  tensor.shape = read_shape(fields);
  tensor.offset = fields.number("offset", kBytesMax);
  tensor.bytes = fields.number("bytes", kBytesMax);
  tensor.crc32 = static_cast<std::uint32_t>(fields.number("crc32", 0xffffffffU));
  tensor.error = tensor.packed ? fields.real("error") : 0.0;
  SLUICE_TRY(fields.result());
  const std::optional<std::size_t> want = manifest_bytes(tensor);
  if (want != tensor.bytes) {
    return fail(
        ErrorCode::corrupt_data,
        fmt::format("{}: tensor {}: {} bytes, {} {} takes {}", where, printable(tensor.name),
                    tensor.bytes, form, to_string(tensor.shape), want.value_or(0)),
        std::string(where));
  }
  return tensor;
}

// In the order of the file, aligned, inside it; every name once per kind.
Result<void> check_places(const Manifest& manifest, std::string_view where) {
  std::set<std::pair<bool, std::string_view>> names;
  std::size_t end = 0;
  for (const ManifestTensor& tensor : manifest.tensors) {
    const auto reject = [&](std::string_view reason) {
      return fail(ErrorCode::corrupt_data,
                  fmt::format("{}: tensor {}: {}", where, printable(tensor.name), reason),
                  std::string(where));
    };
    if (tensor.offset < end || tensor.offset % kPackedAlignment != 0) {
      return reject(fmt::format("offset {}, want a multiple of {} from {}", tensor.offset,
                                kPackedAlignment, end));
    }
    end = tensor.offset + tensor.bytes;
    if (end > manifest.weight_bytes) {
      return reject(fmt::format("ends at {}, the file at {}", end, manifest.weight_bytes));
    }
    if (!names.emplace(tensor.packed.has_value(), tensor.name).second) {
      return reject("is listed twice");
    }
  }
  return {};
}

// What must agree before the rest means anything.
Result<void> check_versions(const json::object& object, std::string_view where) {
  Fields fields(object, where, "");
  if (fields.text("kind") != kKind) {
    fields.reject("kind", fmt::format("not \"{}\": not a packed model", kKind));
  }
  SLUICE_TRY(fields.result());
  const std::uint64_t format = fields.number("format_version", 1U << 30);
  SLUICE_TRY(fields.result());
  if (format != static_cast<std::uint64_t>(kPackedFormatVersion)) {
    return fail(
        ErrorCode::unsupported,
        fmt::format("{}: format version {}, this program reads {}: pack the model again, or "
                    "use the version of sluice that packed it",
                    where, format, kPackedFormatVersion),
        std::string(where));
  }
  const std::uint64_t numerics = fields.number("numerics_version", 1U << 30);
  SLUICE_TRY(fields.result());
  if (numerics != static_cast<std::uint64_t>(kernels::kNumericsVersion)) {
    return fail(ErrorCode::unsupported,
                fmt::format("{}: packed for version {} of the numerics, this program computes "
                            "version {}: pack the model again",
                            where, numerics, kernels::kNumericsVersion),
                std::string(where));
  }
  return {};
}

}  // namespace

std::optional<std::size_t> manifest_bytes(const ManifestTensor& tensor) {
  std::optional<std::int64_t> elements = 1;
  for (const std::int64_t axis : tensor.shape) {
    elements = elements ? checked_mul(*elements, axis) : std::nullopt;
  }
  constexpr std::int64_t kElementsMax = std::int64_t{1} << 46;
  if (!elements || *elements > kElementsMax) {
    return std::nullopt;
  }
  if (!tensor.packed) {
    return static_cast<std::size_t>(*elements) * dtype_bytes(tensor.dtype);
  }
  if (tensor.shape.size() != 2 || tensor.shape[0] > kVocabSizeMax ||
      tensor.shape[1] > kIntermediateSizeMax) {
    return std::nullopt;
  }
  return static_cast<std::size_t>(
      kernels::packed_bytes(*tensor.packed, tensor.shape[0], tensor.shape[1]));
}

std::string to_json(const Manifest& manifest) {
  json::array tensors;
  for (const ManifestTensor& tensor : manifest.tensors) {
    json::object object{
        {"name", tensor.name},
        {"form", tensor.packed ? kernels::to_string(*tensor.packed) : dtype_name(tensor.dtype)},
        {"shape", json::value_from(tensor.shape)},
        {"offset", tensor.offset},
        {"bytes", tensor.bytes},
        {"crc32", tensor.crc32}};
    if (tensor.packed) {
      object["error"] = tensor.error;
    }
    tensors.push_back(std::move(object));
  }
  const json::object object{{"kind", kKind},
                            {"format_version", kPackedFormatVersion},
                            {"numerics_version", kernels::kNumericsVersion},
                            {"preset", to_string(manifest.preset)},
                            {"source", manifest.source},
                            {"config_crc32", manifest.config_crc32},
                            {"weight_bytes", manifest.weight_bytes},
                            {"tensors", std::move(tensors)}};
  return json::serialize(object) + "\n";
}

Result<Manifest> parse_manifest(std::string_view text, std::string_view where) {
  const json::value document = SLUICE_TRY(parse_strict_json(text, where));
  if (!document.is_object()) {
    return fail(ErrorCode::corrupt_data, fmt::format("{}: want a JSON object", where),
                std::string(where));
  }
  SLUICE_TRY(check_versions(document.get_object(), where));
  Fields fields(document.get_object(), where, "");
  Manifest manifest;
  const std::string preset = fields.text("preset");
  const std::optional<WeightPreset> known = weight_preset_from_name(preset);
  if (!known) {
    fields.reject("preset", fmt::format("\"{}\" is not one this version runs", printable(preset)),
                  ErrorCode::unsupported);
  }
  manifest.preset = known.value_or(WeightPreset::bf16);
  manifest.source = fields.text("source");
  manifest.config_crc32 = static_cast<std::uint32_t>(fields.number("config_crc32", 0xffffffffU));
  manifest.weight_bytes = fields.number("weight_bytes", std::uint64_t{1} << 50);
  const json::array& tensors = fields.array("tensors");
  if (tensors.size() > kPackedTensorsMax) {
    fields.reject("tensors",
                  fmt::format("{} entries, the limit is {}", tensors.size(), kPackedTensorsMax));
  }
  SLUICE_TRY(fields.result());
  for (const json::value& tensor : tensors) {
    manifest.tensors.push_back(SLUICE_TRY(read_tensor(tensor, manifest.tensors.size(), where)));
  }
  SLUICE_TRY(check_places(manifest, where));
  return manifest;
}

}  // namespace sluice
