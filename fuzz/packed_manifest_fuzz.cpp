// sluice.json of a packed directory, from anywhere: any text gives tensors that lie in the file one
// after the other, or an Error. What parses is written again and comes back equal.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "weights/packed_manifest.h"

namespace sluice {
namespace {

void check_places(const Manifest& manifest) {
  std::size_t end = 0;
  for (const ManifestTensor& tensor : manifest.tensors) {
    SLUICE_CHECK(tensor.offset >= end);
    SLUICE_CHECK(tensor.offset % kPackedAlignment == 0);
    SLUICE_CHECK(tensor.bytes <= manifest.weight_bytes);
    SLUICE_CHECK(tensor.offset <= manifest.weight_bytes - tensor.bytes);
    SLUICE_CHECK(tensor.shape.size() <= kPackedAxesMax);
    SLUICE_CHECK(manifest_bytes(tensor) == tensor.bytes);
    end = tensor.offset + tensor.bytes;
  }
}

// All but the error of packing, which is a decimal fraction in the file.
void check_equal(const Manifest& a, const Manifest& b) {
  SLUICE_CHECK(a.preset == b.preset);
  SLUICE_CHECK(a.source == b.source);
  SLUICE_CHECK(a.config_crc32 == b.config_crc32);
  SLUICE_CHECK(a.weight_bytes == b.weight_bytes);
  SLUICE_CHECK(a.tensors.size() == b.tensors.size());
  for (std::size_t i = 0; i < a.tensors.size(); ++i) {
    const ManifestTensor& left = a.tensors[i];
    const ManifestTensor& right = b.tensors[i];
    SLUICE_CHECK(left.name == right.name);
    SLUICE_CHECK(left.packed == right.packed);
    SLUICE_CHECK(left.dtype == right.dtype);
    SLUICE_CHECK(left.shape == right.shape);
    SLUICE_CHECK(left.offset == right.offset);
    SLUICE_CHECK(left.bytes == right.bytes);
    SLUICE_CHECK(left.crc32 == right.crc32);
  }
}

void run(std::string_view input) {
  const Result<Manifest> manifest = parse_manifest(input, "fuzz");
  if (!manifest) {
    SLUICE_CHECK(manifest.error().code == ErrorCode::corrupt_data ||
                 manifest.error().code == ErrorCode::unsupported);
    SLUICE_CHECK(manifest.error().message.starts_with("fuzz"));
    SLUICE_CHECK(manifest.error().message.size() < 2000);
    return;
  }
  check_places(*manifest);
  const Result<Manifest> again = parse_manifest(to_json(*manifest), "again");
  SLUICE_CHECK(again.has_value());
  check_equal(*manifest, *again);
}

}  // namespace
}  // namespace sluice

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  sluice::run({reinterpret_cast<const char*>(data), size});
  return 0;
}
