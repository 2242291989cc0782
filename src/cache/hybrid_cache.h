// The memory of sequences and of the prefixes worth keeping: KV blocks, state slots, and the tree
// that says what is in them. The three things that make a prefix reusable (attention KV, recurrent
// state, conv state) are found, shared and given up together here.
//
// One budget in bytes over blocks and slots. Running sequences come first: what they were promised
// (running_block_count, running_slot_count) is theirs whenever they ask, and cached prefixes fill
// whatever is left until then. Resident memory never exceeds the budget. Of what is beyond the
// promises, pinned prefixes may take half: the rest is always there to be given up.
//
// Only whole blocks of computed tokens are shared. Two sequences that computed the same block end
// up with one of the two: by the numerics contract (docs/NUMERICS.md) their bytes are equal.
//
// Thread rule: one owner (the engine thread).
#pragma once

#include <cstddef>
#include <cstdint>
#include <expected>
#include <filesystem>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "cache/block_pool.h"
#include "cache/cache_file_index.h"
#include "cache/prefix_tree.h"
#include "cache/state_pool.h"
#include "cache/token_names.h"

namespace sluice {

struct HybridCacheShape {
  std::size_t block_bytes = 0;
  std::size_t slot_bytes = 0;
  std::int64_t running_block_count = 0;  // blocks that running sequences may hold together
  std::int64_t running_slot_count = 0;   // one per running sequence
  std::size_t reuse_bytes = 0;           // beyond those; 0: nothing is kept, nothing is shared
  std::uint64_t hash_key = 0;
};

// What one running sequence holds. Filled by HybridCache alone.
struct SequenceCache {
  std::vector<BlockId> block_table;  // blocks of its tokens
  SlotId state_slot = 0;
  NodeId node = 0;                   // deepest shared block of its path, pinned
  std::int64_t shared_blocks = 0;    // depth of it: the first entries of block_table
  std::int64_t last_checkpoint = 0;  // tokens before the last one made on its path
};

// What resume() found, and why it was no more.
struct PrefixReuse {
  std::int64_t tokens = 0;     // that need not be computed
  std::int64_t kv_tokens = 0;  // whose KV is known; beyond `tokens` there is no state to go on from
  bool salt_known = false;     // something is stored under this salt
  bool state_evicted = false;  // beyond `tokens` there was a state once
  // What is known goes on after kv_tokens, but from this token on differently. See
  // PrefixTree::shared_with_children() for how far it looks.
  std::optional<std::int64_t> diverged_at = std::nullopt;
};

// Why a prefix was not pinned.
struct PinRefusal {
  bool over_budget = false;      // else: there is no state after its last token
  std::size_t bytes_wanted = 0;  // beyond what is pinned
};

// What forget() gave up.
struct CacheFreed {
  std::int64_t block_count = 0;
  std::int64_t checkpoint_count = 0;
  std::size_t bytes = 0;

  CacheFreed& operator+=(const CacheFreed& other) {
    block_count += other.block_count;
    checkpoint_count += other.checkpoint_count;
    bytes += other.bytes;
    return *this;
  }
};

struct CacheUse {
  std::int64_t block_count = 0;  // in use: by running sequences, by the tree, or both
  std::int64_t slot_count = 0;
  std::int64_t shared_block_count = 0;  // in the tree
  std::int64_t checkpoint_count = 0;
  std::size_t bytes = 0;
  std::size_t block_bytes = 0;  // of these, in blocks
  std::size_t bytes_max = 0;
  std::size_t shared_bytes = 0;  // of the tree's blocks and checkpoints
  std::int64_t pinned_count = 0;
  std::size_t pinned_bytes = 0;
  std::int64_t evicted_block_count = 0;  // for lack of memory, since create()
  std::int64_t evicted_checkpoint_count = 0;
};

class HybridCache {
 public:
  // Errors: invalid_argument, resource_exhausted (see ZeroedSlab).
  static Result<HybridCache> create(const HybridCacheShape& shape);

  // A sequence starts: a slot, no blocks. At most running_slot_count at a time. resume() must
  // follow before anything is computed.
  void open(SequenceCache& sequence, std::string_view salt);
  void close(SequenceCache& sequence);  // shared blocks stay known

  // Takes over the longest known prefix of `tokens`, with its state; the state is zero when nothing
  // is known. Once per sequence.
  PrefixReuse resume(SequenceCache& sequence, std::span<const std::int32_t> tokens);

  // The tokens that resume() would give, without doing anything.
  std::int64_t known_tokens(const SequenceCache& sequence,
                            std::span<const std::int32_t> tokens) const;

  // Blocks for the first token_count tokens. All running sequences together stay within
  // running_block_count.
  void grow(SequenceCache& sequence, std::int64_t token_count);

  // The first computed_count of `tokens` are in the sequence's blocks: shares the whole blocks.
  void share(SequenceCache& sequence, std::span<const std::int32_t> tokens,
             std::int64_t computed_count);

  // A slot to write the state after `token_count` tokens to, when that is worth more than what
  // would have to go for it. Every reserved slot must be kept before the next grow().
  std::optional<SlotId> reserve_checkpoint(SequenceCache& sequence, std::int64_t token_count,
                                           double weight);
  // After share() of these tokens. The slot is the cache's from now on. Returns the slot the state
  // is in: another one when it was known already.
  SlotId keep_checkpoint(const SequenceCache& sequence, std::int64_t token_count, SlotId slot,
                         double weight);
  // Gives up the checkpoint after `token_count` tokens of this sequence if it is still the one in
  // `slot`, and nobody else resumed from it or made it too.
  void drop_unused_checkpoint(const SequenceCache& sequence, std::int64_t token_count, SlotId slot);

  // Keeps what is stored of `tokens` (whole blocks, at least one) under a salt, with the state
  // after them, until unpin(). The node names it; pinning it again changes nothing. Blocks that
  // several pins share count once.
  std::expected<NodeId, PinRefusal> pin(std::string_view salt,
                                        std::span<const std::int32_t> tokens);
  void unpin(NodeId pinned);
  std::size_t pin_bytes(NodeId pinned) const;  // of it alone, shared blocks included
  std::size_t pinned_bytes() const;
  std::size_t pinned_bytes_max() const { return shape_.reuse_bytes / 2; }
  // The pinned nodes at or above the one the sequence goes on from.
  std::vector<NodeId> pinned_on_path(const SequenceCache& sequence) const;

  // Gives up what no running sequence holds and no pin keeps: all of it, or what one salt has.
  CacheFreed forget();
  CacheFreed forget(std::string_view salt);

  // Writes every prefix one can go on from, of all salts; not those with names nobody knows.
  // Errors: those of CacheFileWriter.
  Result<CacheMoved> save(const std::filesystem::path& path, const CacheIdentity& identity,
                          std::span<const CacheFilePin> pins, const TokenNames& names) const;

  // Adds what a file has, most valuable first, as room allows; only KV that nobody can go on from
  // goes for it. What is not taken is not read. `pins`: of what is stored now. Errors: of
  // CacheFileReader; unsupported (another identity). Then nothing of the file is kept.
  Result<CacheMoved> load(const std::filesystem::path& path, const CacheIdentity& identity,
                          std::vector<LoadedPin>& pins, TokenNames& names);

  std::byte* blocks() { return blocks_.data(); }
  std::byte* slots() { return slots_.data(); }
  CacheUse use() const;

  void check_invariants() const;

 private:
  friend class CacheFileLoad;
  HybridCache(const HybridCacheShape& shape, BlockPool blocks, StatePool slots);

  bool keeps_prefixes() const { return shape_.reuse_bytes > 0; }
  std::size_t used_bytes() const;
  std::size_t resident_bytes() const;
  std::size_t bytes_max() const;
  bool has_room_for(std::int64_t blocks, std::int64_t slots) const;
  bool can_pin(std::int64_t new_blocks, std::int64_t new_slots) const;
  bool evict_below(double value);  // something cheaper; false when there is nothing
  PrefixReuse reuse_of(const PrefixTree::Match& match, NodeId root,
                       std::span<const std::int32_t> tokens) const;
  CacheFreed freed_since(const CacheUse& before);
  BlockId allocate_block();
  SlotId allocate_slot();  // with what its last owner left in it
  std::int64_t last_checkpoint_of(const SequenceCache& sequence) const;
  std::byte* slot(SlotId id) {
    return slots_.data() + static_cast<std::size_t>(id) * shape_.slot_bytes;
  }
  NodeId node_at(const SequenceCache& sequence, std::int64_t token_count) const;

  HybridCacheShape shape_;
  BlockPool blocks_;
  StatePool slots_;
  PrefixTree tree_;
  std::int64_t open_count_ = 0;
  std::int64_t evicted_blocks_ = 0;
  std::int64_t evicted_checkpoints_ = 0;
};

}  // namespace sluice
