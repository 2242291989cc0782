// The file that kept prefixes are saved to: written once from front to back, read at any place.
//
//   preamble  magic (8 bytes), u32 format, u64 id, u64 bytes of the index, CRC-32 of all these
//   index     see cache_file_index.h; CRC-32
//   blocks    of node 0, 1, ...: its bytes, CRC-32
//   states    of checkpoint 0, 1, ...: its bytes, CRC-32
//
// Every checksum of what follows the preamble begins with the id, random for each file, and the
// number of the part: a part of another file, or at another place, does not pass. Bytes that do
// not pass are never handed out. CRC-32 finds every change of up to two bits in a part (of less
// than 512 MB), and of any larger damage all but one in 2^32.
//
// The file holds what users wrote, as token ids, and the keys of the API: its owner alone may read
// it.
//
// Thread rule: one owner.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <utility>

#include "base/result.h"
#include "cache/cache_file_index.h"
#include "cache/token_names.h"
#include "platform/atomic_file.h"
#include "platform/positioned_file.h"

namespace sluice {

inline constexpr std::uint32_t kCacheFileFormat = 2;
inline constexpr std::uint64_t kCacheFileIndexBytesMax = std::uint64_t{1} << 32;  // 1e9 tokens

class CacheFileWriter {
 public:
  // `id` is random. Errors: those of AtomicFile; resource_exhausted (a larger index).
  static Result<CacheFileWriter> create(const std::filesystem::path& path,
                                        const CacheFileIndex& index, std::uint64_t id);

  // The blocks of all nodes in their order, then the states of all checkpoints.
  Result<void> write(std::span<const std::byte> bytes);
  Result<void> commit();  // all were written; the file is there, and durable

 private:
  CacheFileWriter(std::unique_ptr<AtomicFile> file, std::uint64_t id)
      : file_(std::move(file)), id_(id) {}

  std::unique_ptr<AtomicFile> file_;
  std::uint64_t id_;
  std::uint64_t parts_ = 0;  // written
};

class CacheFileReader {
 public:
  // Reads all but blocks and states. Errors: not_found; io; invalid_argument (not a regular file);
  // unsupported (another format); corrupt_data (not such a file, cut short, or damaged).
  static Result<CacheFileReader> open(const std::filesystem::path& path);

  const CacheFileIndex& index() const { return index_; }

  // Gives the tokens of the index the names that their contents have here. Error corrupt_data: a
  // content that is none.
  Result<void> rename(TokenNames& names);

  // Fills all of `bytes`, of the size the index names. Errors: io, corrupt_data; then `bytes` has
  // anything in it.
  Result<void> read_block(std::size_t node, std::span<std::byte> bytes) const;
  Result<void> read_state(std::size_t checkpoint, std::span<std::byte> bytes) const;

 private:
  CacheFileReader(PositionedFile file, std::uint64_t id, std::uint64_t begin, CacheFileIndex index)
      : file_(std::move(file)), id_(id), begin_(begin), index_(std::move(index)) {}

  Result<void> read_part(std::uint64_t part, std::uint64_t position,
                         std::span<std::byte> bytes) const;
  std::uint64_t states_begin() const;

  PositionedFile file_;
  std::uint64_t id_;
  std::uint64_t begin_;  // of the first block
  CacheFileIndex index_;
};

}  // namespace sluice
