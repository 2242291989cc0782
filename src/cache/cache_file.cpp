#include "cache/cache_file.h"

#include <fmt/format.h>
#include <zlib.h>

#include <array>
#include <cstring>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>

#include "base/check.h"
#include "base/checked_math.h"

namespace sluice {
namespace {

constexpr std::array<char, 8> kMagic{'S', 'L', 'U', 'I', 'C', 'E', 'K', 'V'};
constexpr std::size_t kFormatAt = kMagic.size();
constexpr std::size_t kIdAt = kFormatAt + sizeof(std::uint32_t);
constexpr std::size_t kIndexBytesAt = kIdAt + sizeof(std::uint64_t);
constexpr std::size_t kChecksumAt = kIndexBytesAt + sizeof(std::uint64_t);
constexpr std::size_t kPreambleBytes = kChecksumAt + sizeof(std::uint32_t);
static_assert(kPreambleBytes == 32);

using Preamble = std::array<std::byte, kPreambleBytes>;

template <class Number>
void put(Preamble& preamble, std::size_t at, Number value) {
  std::memcpy(preamble.data() + at, &value, sizeof(value));
}

template <class Number>
Number get(const Preamble& preamble, std::size_t at) {
  Number value{};
  std::memcpy(&value, preamble.data() + at, sizeof(value));
  return value;
}

std::uint32_t crc_of(std::uint32_t before, std::span<const std::byte> bytes) {
  if (bytes.empty()) {
    return before;  // zlib has another meaning for no bytes at no address
  }
  return static_cast<std::uint32_t>(
      crc32_z(before, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size()));
}

std::uint32_t preamble_checksum(const Preamble& preamble) {
  return crc_of(0, std::span(preamble).first(kChecksumAt));
}

// Part 0 is the index, then come the blocks, then the states.
std::uint32_t part_checksum(std::uint64_t id, std::uint64_t part,
                            std::span<const std::byte> bytes) {
  const std::array<std::uint64_t, 2> place{id, part};
  return crc_of(crc_of(0, std::as_bytes(std::span(place))), bytes);
}

std::unexpected<Error> damaged(const std::filesystem::path& path, std::string_view what) {
  return fail(ErrorCode::corrupt_data, fmt::format("{}: {}", path.filename().string(), what),
              path.string());
}

// Parts of one kind, each with its checksum.
std::optional<std::uint64_t> area_bytes(std::uint64_t part_bytes, std::size_t count) {
  const auto with_checksum = checked_add<std::uint64_t>(part_bytes, sizeof(std::uint32_t));
  return with_checksum ? checked_mul<std::uint64_t>(*with_checksum, count) : std::nullopt;
}

std::optional<std::uint64_t> file_bytes(std::uint64_t begin, const CacheFileIndex& index) {
  const auto blocks = area_bytes(index.block_bytes, index.nodes.size());
  const auto states = area_bytes(index.slot_bytes, index.checkpoints.size());
  const auto before_states = blocks ? checked_add(begin, *blocks) : std::nullopt;
  return before_states && states ? checked_add(*before_states, *states) : std::nullopt;
}

Result<Preamble> read_preamble(const PositionedFile& file) {
  Preamble preamble{};
  if (file.size() < kPreambleBytes) {
    return damaged(file.path(), fmt::format("{} bytes are no cache file", file.size()));
  }
  SLUICE_TRY(file.read(0, preamble));
  if (std::memcmp(preamble.data(), kMagic.data(), kMagic.size()) != 0) {
    return damaged(file.path(), "not a cache file");
  }
  const auto format = get<std::uint32_t>(preamble, kFormatAt);
  if (format != kCacheFileFormat) {
    return fail(ErrorCode::unsupported,
                fmt::format("{}: format {}, this program reads format {}",
                            file.path().filename().string(), format, kCacheFileFormat),
                file.path().string());
  }
  if (get<std::uint32_t>(preamble, kChecksumAt) != preamble_checksum(preamble)) {
    return damaged(file.path(), "the first bytes are damaged");
  }
  return preamble;
}

}  // namespace

Result<CacheFileWriter> CacheFileWriter::create(const std::filesystem::path& path,
                                                const CacheFileIndex& index, std::uint64_t id) {
  const std::string bytes = encode_cache_file_index(index);
  if (bytes.size() > kCacheFileIndexBytesMax) {
    return fail(ErrorCode::resource_exhausted,
                fmt::format("{}: an index of {} bytes, want at most {}", path.filename().string(),
                            bytes.size(), kCacheFileIndexBytesMax));
  }
  Preamble preamble{};
  std::memcpy(preamble.data(), kMagic.data(), kMagic.size());
  put(preamble, kFormatAt, kCacheFileFormat);
  put(preamble, kIdAt, id);
  put(preamble, kIndexBytesAt, static_cast<std::uint64_t>(bytes.size()));
  put(preamble, kChecksumAt, preamble_checksum(preamble));
  CacheFileWriter writer(SLUICE_TRY(AtomicFile::create(path, FileReaders::owner)), id);
  SLUICE_TRY(writer.file_->write(preamble));
  SLUICE_TRY(writer.write(std::as_bytes(std::span(bytes))));
  return writer;
}

Result<void> CacheFileWriter::write(std::span<const std::byte> bytes) {
  const std::array<std::uint32_t, 1> checksum{part_checksum(id_, parts_++, bytes)};
  SLUICE_TRY(file_->write(bytes));
  return file_->write(std::as_bytes(std::span(checksum)));
}

Result<void> CacheFileWriter::commit() {
  return file_->commit();
}

Result<CacheFileReader> CacheFileReader::open(const std::filesystem::path& path) {
  PositionedFile file = SLUICE_TRY(PositionedFile::open(path));
  const Preamble preamble = SLUICE_TRY(read_preamble(file));
  const auto id = get<std::uint64_t>(preamble, kIdAt);
  const auto index_bytes = get<std::uint64_t>(preamble, kIndexBytesAt);
  const std::uint64_t rest = file.size() - kPreambleBytes;
  if (index_bytes > kCacheFileIndexBytesMax || rest < sizeof(std::uint32_t) ||
      index_bytes > rest - sizeof(std::uint32_t)) {
    return damaged(path, "it is cut short");
  }
  std::string bytes(index_bytes, '\0');
  SLUICE_TRY(file.read(kPreambleBytes, std::as_writable_bytes(std::span(bytes))));
  std::array<std::uint32_t, 1> checksum{};
  SLUICE_TRY(file.read(kPreambleBytes + index_bytes, std::as_writable_bytes(std::span(checksum))));
  if (checksum[0] != part_checksum(id, 0, std::as_bytes(std::span(bytes)))) {
    return damaged(path, "the index is damaged");
  }
  Result<CacheFileIndex> index = parse_cache_file_index(bytes);
  if (!index) {
    return damaged(path, index.error().message);
  }
  const std::uint64_t begin = kPreambleBytes + index_bytes + sizeof(std::uint32_t);
  const std::optional<std::uint64_t> size = file_bytes(begin, *index);
  if (size != file.size()) {
    return damaged(path, fmt::format("it has {} bytes and should have {}", file.size(),
                                     size ? std::to_string(*size) : "more than there can be"));
  }
  return CacheFileReader(std::move(file), id, begin, std::move(*index));
}

std::uint64_t CacheFileReader::states_begin() const {
  return begin_ + *area_bytes(index_.block_bytes, index_.nodes.size());
}

Result<void> CacheFileReader::rename(TokenNames& names) {
  std::unordered_map<std::int32_t, std::int32_t> new_names;
  for (CacheFileIndex::Name& name : index_.names) {
    const auto known = names.name_of(name.content);
    if (!known) {
      return fail(ErrorCode::corrupt_data, "the index is damaged: a token has an unknown name");
    }
    new_names.emplace(std::exchange(name.token, *known), *known);
  }
  if (new_names.empty()) {
    return {};
  }
  for (CacheFileIndex::Node& node : index_.nodes) {
    for (std::int32_t& token : node.tokens) {
      token = token < 0 ? new_names.at(token) : token;
    }
  }
  return {};
}

Result<void> CacheFileReader::read_block(std::size_t node, std::span<std::byte> bytes) const {
  SLUICE_CHECK(node < index_.nodes.size());
  SLUICE_CHECK(bytes.size() == index_.block_bytes);
  return read_part(1 + node, begin_ + *area_bytes(index_.block_bytes, node), bytes);
}

Result<void> CacheFileReader::read_state(std::size_t checkpoint, std::span<std::byte> bytes) const {
  SLUICE_CHECK(checkpoint < index_.checkpoints.size());
  SLUICE_CHECK(bytes.size() == index_.slot_bytes);
  return read_part(1 + index_.nodes.size() + checkpoint,
                   states_begin() + *area_bytes(index_.slot_bytes, checkpoint), bytes);
}

Result<void> CacheFileReader::read_part(std::uint64_t part, std::uint64_t position,
                                        std::span<std::byte> bytes) const {
  SLUICE_TRY(file_.read(position, bytes));
  std::array<std::uint32_t, 1> checksum{};
  SLUICE_TRY(file_.read(position + bytes.size(), std::as_writable_bytes(std::span(checksum))));
  if (checksum[0] != part_checksum(id_, part, bytes)) {
    return damaged(file_.path(), fmt::format("part {} is damaged (byte {} on)", part, position));
  }
  return {};
}

}  // namespace sluice
