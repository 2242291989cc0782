// What a cache file says about its contents: whose they are, which prefixes, which states. The
// bytes of blocks and states follow in the file (cache_file.h). Hashes are not stored: the tree is
// built anew from the tokens.
//
// As bytes: numbers little-endian; a text or list is its count (u32) and its items.
//   identity     list of (name, value)
//   sizes        u64 bytes of a block, u64 bytes of a state
//   namespaces   list of texts
//   names        list of (i32 below 0, content): of all such tokens (token_names.h)
//   nodes        list of (i32 parent, 64 i32 tokens)
//   checkpoints  list of (u32 node, f64 weight, f64 uses)
//   pins         list of (u32 checkpoint, id, name, f64 seconds left; below 0: no end)
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "cache/prefix_tree.h"

namespace sluice {

// Everything that decides what the bytes of a block or state are: they are worthless under any
// other. `name` is for people, too: "weights", "numerics".
struct CacheFact {
  std::string name;
  std::string value;
  bool operator==(const CacheFact&) const = default;
};
using CacheIdentity = std::vector<CacheFact>;

struct CacheFileIndex {
  struct Name {
    std::int32_t token = 0;
    std::string content;
    bool operator==(const Name&) const = default;
  };
  struct Node {
    std::int32_t parent = 0;  // an earlier node; or, for the first of a path, -1 - namespace
    std::array<std::int32_t, kPrefixBlockTokens> tokens{};
    bool operator==(const Node&) const = default;
  };
  struct Checkpoint {
    std::int32_t node = 0;
    double weight = 0.0;
    double uses = 0.0;
    bool operator==(const Checkpoint&) const = default;
  };
  struct Pin {
    std::int32_t checkpoint = 0;
    std::string id = {};
    std::string name = {};
    std::optional<double> seconds_left = std::nullopt;
    bool operator==(const Pin&) const = default;
  };

  CacheIdentity identity;
  std::uint64_t block_bytes = 0;
  std::uint64_t slot_bytes = 0;
  std::vector<std::string> namespaces;  // salts
  std::vector<Name> names = {};         // ascending tokens
  std::vector<Node> nodes;
  std::vector<Checkpoint> checkpoints;  // most valuable first; one per node
  std::vector<Pin> pins;                // one per checkpoint

  bool operator==(const CacheFileIndex&) const = default;
};

// A pin as a file keeps it. Whose it is, and what it pins: a node here, tokens after load().
struct CacheFilePin {
  NodeId node = 0;
  std::string id = {};
  std::string name = {};
  std::optional<double> seconds_left = std::nullopt;
};
struct LoadedPin {
  std::string salt;
  std::vector<std::int32_t> tokens = {};
  CacheFileIndex::Pin label;
};

// What save() wrote, or load() added.
struct CacheMoved {
  std::int64_t block_count = 0;
  std::int64_t checkpoint_count = 0;
  std::size_t bytes = 0;  // of these blocks and states
};

std::string encode_cache_file_index(const CacheFileIndex& index);

// Any bytes give an index whose parts refer to each other as stated above, or an Error
// (corrupt_data). Memory in proportion to the bytes.
Result<CacheFileIndex> parse_cache_file_index(std::string_view bytes);

// Error unsupported: they differ, the first difference with both values.
Result<void> check_cache_identity(const CacheIdentity& stored, const CacheIdentity& here);

}  // namespace sluice
