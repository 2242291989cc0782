// The index of a cache file, from anywhere (a checksum keeps damage out, not malice): any bytes
// give parts that refer to each other, or an Error. What parses is written again and comes back
// equal.
#include <algorithm>
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "cache/cache_file_index.h"

namespace sluice {
namespace {

constexpr auto token_of = &CacheFileIndex::Name::token;

void check_references(const CacheFileIndex& index) {
  for (std::size_t i = 0; i < index.nodes.size(); ++i) {
    const std::int32_t parent = index.nodes[i].parent;
    SLUICE_CHECK(parent < static_cast<std::int64_t>(i));
    SLUICE_CHECK(parent >= 0 || -1 - parent < std::ssize(index.namespaces));
    for (const std::int32_t token : index.nodes[i].tokens) {
      SLUICE_CHECK(token >= 0 || std::ranges::binary_search(index.names, token, {}, token_of));
    }
  }
  for (const CacheFileIndex::Checkpoint& checkpoint : index.checkpoints) {
    SLUICE_CHECK(checkpoint.node >= 0);
    SLUICE_CHECK(checkpoint.node < std::ssize(index.nodes));
    SLUICE_CHECK(checkpoint.weight >= 0.0);
    SLUICE_CHECK(checkpoint.uses >= 0.0);
  }
  for (const CacheFileIndex::Pin& pin : index.pins) {
    SLUICE_CHECK(pin.checkpoint >= 0);
    SLUICE_CHECK(pin.checkpoint < std::ssize(index.checkpoints));
    SLUICE_CHECK(!pin.seconds_left || *pin.seconds_left >= 0.0);
  }
}

void run(std::string_view input) {
  const Result<CacheFileIndex> index = parse_cache_file_index(input);
  if (!index) {
    SLUICE_CHECK(index.error().code == ErrorCode::corrupt_data);
    return;
  }
  check_references(*index);
  const Result<CacheFileIndex> again = parse_cache_file_index(encode_cache_file_index(*index));
  SLUICE_CHECK(again.has_value());
  SLUICE_CHECK(*again == *index);
}

}  // namespace
}  // namespace sluice

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  sluice::run({reinterpret_cast<const char*>(data), size});
  return 0;
}
