// Which prefixes are known: a tree of blocks of 64 tokens. A node stands for all tokens from the
// root to it; it names the KV block of its own 64 and, where one was kept, the state checkpoint
// after them. Only bookkeeping: the memory belongs to HybridCache.
//
// A prefix can be reused up to a node with a checkpoint, since the recurrent state cannot be cut
// back. Nodes are found by hash and then compared token by token. Each salt has a root of its own:
// what two salts store never meets.
//
// What to give up, cheapest first: a leaf without a checkpoint is worth nothing (nothing can be
// resumed at or below it); a checkpoint is worth the tokens it saves against the one above it on
// its path, times its weight and its recent uses, by the square of how often the tree was turned
// over since it was last used. Marks of one prefill thin out evenly that way: giving one up makes
// its neighbour worth twice as much; and what was popular yesterday goes. Time is counted in
// operations on the tree, so the same calls make the same tree. A kept checkpoint takes no part in
// this.
//
// Thread rule: one owner (the engine thread).
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "cache/block_pool.h"
#include "cache/state_pool.h"

namespace sluice {

inline constexpr std::int64_t kPrefixBlockTokens = 64;

using NodeId = std::int32_t;

class PrefixTree {
 public:
  // `hash_key` is mixed into every hash; any value works, an unknown one keeps hostile prompts from
  // being made to collide.
  explicit PrefixTree(std::uint64_t hash_key) : hash_key_(hash_key) {}

  struct Match {
    NodeId node = 0;             // deepest node with a checkpoint; the root when there is none
    std::int64_t tokens = 0;     // up to it
    NodeId deepest = 0;          // deepest node at all
    std::int64_t kv_tokens = 0;  // up to it
    bool evicted = false;        // beyond `node` there was a checkpoint once: evict_checkpoint()
  };

  // The root of a salt, made when new; it stays while pinned or while it has children.
  NodeId root(std::string_view salt);

  Match match(NodeId root, std::span<const std::int32_t> tokens) const;

  // How many of `tokens`, which follow `node` but are none of its children, one of them begins
  // with: the most of all, or of the kContinuationsMax added last. None without children.
  static constexpr int kContinuationsMax = 256;
  std::optional<std::int64_t> shared_with_children(NodeId node,
                                                   std::span<const std::int32_t> tokens) const;

  // All nodes below a root, deeper ones first.
  std::vector<NodeId> below(NodeId root) const;
  std::optional<NodeId> find_root(std::string_view salt) const;
  const std::string& salt(NodeId root) const { return *salt_of_root_.at(root); }

  // Most valuable first, kept ones before all others.
  std::vector<NodeId> checkpoints_by_value() const;

  // The child of `parent` with these 64 tokens.
  std::optional<NodeId> find(NodeId parent, std::span<const std::int32_t> tokens) const;
  NodeId add(NodeId parent, std::span<const std::int32_t> tokens, BlockId block);  // not there yet

  NodeId parent(NodeId id) const { return node(id).parent; }
  BlockId block(NodeId id) const { return node(id).block; }
  std::span<const std::int32_t, kPrefixBlockTokens> tokens(NodeId id) const {
    return node(id).tokens;
  }
  bool has_children(NodeId id) const { return node(id).children > 0; }
  std::int64_t depth(NodeId id) const { return node(id).depth; }  // in blocks; 0: a root

  // A pinned node and all above it stay.
  void pin(NodeId id);
  void unpin(NodeId id);

  std::optional<SlotId> checkpoint(NodeId id) const { return node(id).checkpoint; }
  void set_checkpoint(NodeId id, SlotId slot, double weight);  // there was none
  SlotId take_checkpoint(NodeId id);                           // there is one, not kept
  SlotId evict_checkpoint(NodeId id);  // the same, and match() tells until there is one again
  // It was resumed from, or made once more (by a sequence to which it is worth `weight`).
  void use_checkpoint(NodeId id, double weight = 0.0);
  bool is_used(NodeId id) const { return node(id).uses > 0.0; }
  double weight(NodeId id) const { return node(id).weight; }
  double uses(NodeId id) const { return node(id).uses; }
  void set_uses(NodeId id, double uses);  // as if it had been used so often, last time now

  // A kept node has a checkpoint, which is not given up before release(): it is never the cheapest.
  void keep(NodeId id);     // it has a checkpoint and is not kept
  void release(NodeId id);  // it is kept
  bool is_kept(NodeId id) const { return node(id).kept; }
  bool leads_to_kept(NodeId id) const { return node(id).kept_below > 0; }  // or is kept
  std::int64_t kept_count() const { return kept_count_; }
  std::int64_t kept_path_count() const { return kept_path_count_; }  // nodes that lead to kept ones

  // What a checkpoint would be worth that was made now, and saves so many tokens.
  static double value_of(std::int64_t saved_tokens, double weight);

  struct Cheapest {
    NodeId node;
    double value;
  };
  // Of all that are not kept, or of the next few hundred when there are more: then each call looks
  // at others.
  std::optional<Cheapest> cheapest_checkpoint();
  std::optional<NodeId> dead_leaf() const;  // the one touched longest ago
  bool is_dead(NodeId id) const { return is_dead(node(id)); }
  BlockId remove(NodeId dead_leaf);  // its block

  std::int64_t node_count() const { return node_count_; }  // without roots
  std::int64_t checkpoint_count() const { return std::ssize(candidates_) + kept_count_; }

  void check_invariants() const;

 private:
  static constexpr NodeId kNone = -1;
  struct Node {
    NodeId parent = 0;
    std::int32_t depth = 0;
    std::int32_t children = 0;
    NodeId last_child = kNone;  // the one added last; the others follow as earlier siblings
    NodeId earlier_sibling = kNone;
    NodeId later_sibling = kNone;
    std::int32_t pins = 0;
    std::int32_t kept_below = 0;  // kept nodes at or below this one; not counted for roots
    double uses = 0.0;            // recent ones, at most kUsesMax
    BlockId block = 0;
    std::optional<SlotId> checkpoint;
    bool checkpoint_evicted = false;
    bool kept = false;
    double weight = 0.0;
    std::uint64_t touched_at = 0;
    std::array<std::int32_t, kPrefixBlockTokens> tokens{};
    bool exists = false;
  };

  const Node& node(NodeId id) const;
  Node& node(NodeId id) { return const_cast<Node&>(std::as_const(*this).node(id)); }
  std::uint64_t hash(NodeId parent, std::span<const std::int32_t> tokens) const;
  NodeId make_node();
  void link_to_parent(NodeId id);
  void unlink_from_parent(NodeId id);
  void check_siblings(NodeId id) const;
  void check_kept() const;
  bool is_dead(const Node& node) const;
  void list_if_dead(NodeId id);  // after a change that may have made it dead
  void unlist(NodeId id);        // before a change of a node that may be dead
  void drop_root_if_idle(NodeId id);
  double turnovers_since(const Node& node) const;
  double value_of(const Node& node) const;

  std::uint64_t hash_key_;
  std::uint64_t now_ = 0;
  std::vector<Node> nodes_;
  std::vector<NodeId> unused_;  // free entries of nodes_
  std::unordered_multimap<std::uint64_t, NodeId> by_hash_;
  std::unordered_map<std::string, NodeId> roots_;
  std::unordered_map<NodeId, const std::string*> salt_of_root_;  // keys of roots_
  std::set<std::pair<std::uint64_t, NodeId>> dead_leaves_;       // (touched_at, node)
  std::set<NodeId> candidates_;  // nodes with a checkpoint that are not kept
  NodeId next_candidate_ = 0;    // of cheapest_checkpoint()
  std::int64_t node_count_ = 0;
  std::int64_t kept_count_ = 0;
  std::int64_t kept_path_count_ = 0;
};

}  // namespace sluice
