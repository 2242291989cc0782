#include "cache/prefix_tree.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "base/check.h"

namespace sluice {
namespace {

constexpr double kUsesMax = 4.0;
constexpr int kCandidatesMax = 256;           // looked at for one eviction
constexpr std::int64_t kSavedBlocksMax = 64;  // as far as the next checkpoint above is looked for

}  // namespace

const PrefixTree::Node& PrefixTree::node(NodeId id) const {
  SLUICE_CHECK(id >= 0);
  SLUICE_CHECK(id < std::ssize(nodes_));
  const Node& found = nodes_[static_cast<std::size_t>(id)];
  SLUICE_CHECK(found.exists);
  return found;
}

std::uint64_t PrefixTree::hash(NodeId parent, std::span<const std::int32_t> tokens) const {
  std::uint64_t state = hash_key_;
  const auto mix = [&state](std::uint64_t value) {
    state = (state ^ value) * 0x9e3779b97f4a7c15U;
    state ^= state >> 32;
  };
  mix(static_cast<std::uint64_t>(parent));
  for (const std::int32_t token : tokens) {
    mix(static_cast<std::uint64_t>(token) + hash_key_);
  }
  return state;
}

NodeId PrefixTree::make_node() {
  NodeId id = 0;
  if (unused_.empty()) {
    id = static_cast<NodeId>(nodes_.size());
    nodes_.emplace_back();
  } else {
    id = unused_.back();
    unused_.pop_back();
  }
  Node& made = nodes_[static_cast<std::size_t>(id)];
  made = Node{};
  made.exists = true;
  return id;
}

NodeId PrefixTree::root(std::string_view salt) {
  const auto [entry, is_new] = roots_.try_emplace(std::string(salt), 0);
  if (is_new) {
    entry->second = make_node();
    node(entry->second).parent = entry->second;
    salt_of_root_[entry->second] = &entry->first;
  }
  return entry->second;
}

void PrefixTree::drop_root_if_idle(NodeId id) {
  const Node& root = node(id);
  if (root.depth != 0 || root.children != 0 || root.pins != 0) {
    return;
  }
  const auto salt = salt_of_root_.find(id);
  roots_.erase(roots_.find(*salt->second));
  salt_of_root_.erase(salt);
  nodes_[static_cast<std::size_t>(id)].exists = false;
  unused_.push_back(id);
}

PrefixTree::Match PrefixTree::match(NodeId root, std::span<const std::int32_t> tokens) const {
  constexpr auto kBlock = static_cast<std::size_t>(kPrefixBlockTokens);
  Match match{.node = root, .deepest = root};
  for (; tokens.size() >= kBlock; tokens = tokens.subspan(kBlock)) {
    const std::optional<NodeId> child = find(match.deepest, tokens.first(kBlock));
    if (!child) {
      break;
    }
    match.deepest = *child;
    match.kv_tokens += kPrefixBlockTokens;
    match.evicted = match.evicted || node(*child).checkpoint_evicted;
    if (node(*child).checkpoint) {
      match.node = *child;
      match.tokens = match.kv_tokens;
      match.evicted = false;
    }
  }
  return match;
}

std::optional<std::int64_t> PrefixTree::shared_with_children(
    NodeId id, std::span<const std::int32_t> tokens) const {
  std::optional<std::int64_t> most;
  NodeId child = node(id).last_child;
  for (int i = 0; child != kNone && i < kContinuationsMax; ++i) {
    const auto& known = node(child).tokens;
    const std::int64_t shared = std::ranges::mismatch(known, tokens).in1 - known.begin();
    most = std::max(most.value_or(0), shared);
    child = node(child).earlier_sibling;
  }
  return most;
}

std::vector<NodeId> PrefixTree::below(NodeId root) const {
  std::vector<NodeId> nodes{root};
  for (std::size_t i = 0; i < nodes.size(); ++i) {  // parents before their children
    for (NodeId child = node(nodes[i]).last_child; child != kNone;
         child = node(child).earlier_sibling) {
      nodes.push_back(child);
    }
  }
  nodes.erase(nodes.begin());
  std::ranges::reverse(nodes);
  return nodes;
}

std::optional<NodeId> PrefixTree::find_root(std::string_view salt) const {
  const auto found = roots_.find(std::string(salt));
  return found == roots_.end() ? std::nullopt : std::optional(found->second);
}

std::optional<NodeId> PrefixTree::find(NodeId parent, std::span<const std::int32_t> tokens) const {
  const auto [begin, end] = by_hash_.equal_range(hash(parent, tokens));
  for (auto entry = begin; entry != end; ++entry) {
    const Node& candidate = node(entry->second);
    if (candidate.parent == parent && std::ranges::equal(candidate.tokens, tokens)) {
      return entry->second;
    }
  }
  return std::nullopt;
}

NodeId PrefixTree::add(NodeId parent, std::span<const std::int32_t> tokens, BlockId block) {
  SLUICE_CHECK(std::ssize(tokens) == kPrefixBlockTokens);
  SLUICE_CHECK(!find(parent, tokens));
  const NodeId id = make_node();
  unlist(parent);
  Node& made = node(id);
  made.parent = parent;
  link_to_parent(id);
  made.depth = node(parent).depth + 1;
  made.block = block;
  made.touched_at = ++now_;
  std::ranges::copy(tokens, made.tokens.begin());
  by_hash_.emplace(hash(parent, tokens), id);
  ++node_count_;
  list_if_dead(id);
  return id;
}

void PrefixTree::link_to_parent(NodeId id) {
  Node& parent = node(node(id).parent);
  if (parent.last_child != kNone) {
    node(parent.last_child).later_sibling = id;
  }
  node(id).earlier_sibling = std::exchange(parent.last_child, id);
  ++parent.children;
}

void PrefixTree::unlink_from_parent(NodeId id) {
  const Node& leaving = node(id);
  Node& parent = node(leaving.parent);
  if (leaving.later_sibling != kNone) {
    node(leaving.later_sibling).earlier_sibling = leaving.earlier_sibling;
  } else {
    parent.last_child = leaving.earlier_sibling;
  }
  if (leaving.earlier_sibling != kNone) {
    node(leaving.earlier_sibling).later_sibling = leaving.later_sibling;
  }
  --parent.children;
}

void PrefixTree::pin(NodeId id) {
  unlist(id);
  ++node(id).pins;
}

void PrefixTree::unpin(NodeId id) {
  SLUICE_CHECK(node(id).pins > 0);
  --node(id).pins;
  list_if_dead(id);
  drop_root_if_idle(id);
}

bool PrefixTree::is_dead(const Node& node) const {
  return node.depth > 0 && node.children == 0 && node.pins == 0 && !node.checkpoint;
}

void PrefixTree::list_if_dead(NodeId id) {
  if (is_dead(node(id))) {
    dead_leaves_.emplace(node(id).touched_at, id);
  }
}

void PrefixTree::unlist(NodeId id) {
  if (is_dead(node(id))) {
    dead_leaves_.erase({node(id).touched_at, id});
  }
}

void PrefixTree::set_checkpoint(NodeId id, SlotId slot, double weight) {
  SLUICE_CHECK(node(id).depth > 0);
  SLUICE_CHECK(!node(id).checkpoint);
  unlist(id);
  Node& owner = node(id);
  owner.checkpoint = slot;
  owner.checkpoint_evicted = false;
  owner.weight = weight;
  owner.uses = 0.0;
  owner.touched_at = ++now_;
  candidates_.insert(id);
}

SlotId PrefixTree::take_checkpoint(NodeId id) {
  SLUICE_CHECK(node(id).checkpoint.has_value());
  SLUICE_CHECK(!node(id).kept);
  const SlotId slot = *node(id).checkpoint;
  node(id).checkpoint.reset();
  candidates_.erase(id);
  list_if_dead(id);
  return slot;
}

SlotId PrefixTree::evict_checkpoint(NodeId id) {
  node(id).checkpoint_evicted = true;
  return take_checkpoint(id);
}

void PrefixTree::use_checkpoint(NodeId id, double weight) {
  Node& owner = node(id);
  SLUICE_CHECK(owner.checkpoint.has_value());
  owner.uses = std::min(kUsesMax, 1.0 + owner.uses / (1.0 + turnovers_since(owner)));
  owner.weight = std::max(owner.weight, weight);
  owner.touched_at = ++now_;  // not listed: it is not dead
}

void PrefixTree::set_uses(NodeId id, double uses) {
  SLUICE_CHECK(node(id).checkpoint.has_value());
  node(id).uses = std::min(kUsesMax, uses);
  node(id).touched_at = ++now_;
}

void PrefixTree::keep(NodeId id) {
  SLUICE_CHECK(node(id).checkpoint.has_value());
  SLUICE_CHECK(!node(id).kept);
  node(id).kept = true;
  candidates_.erase(id);
  ++kept_count_;
  for (NodeId above = id; node(above).depth > 0; above = node(above).parent) {
    kept_path_count_ += node(above).kept_below++ == 0 ? 1 : 0;
  }
}

void PrefixTree::release(NodeId id) {
  SLUICE_CHECK(node(id).kept);
  node(id).kept = false;
  candidates_.insert(id);
  --kept_count_;
  for (NodeId above = id; node(above).depth > 0; above = node(above).parent) {
    kept_path_count_ -= --node(above).kept_below == 0 ? 1 : 0;
  }
}

double PrefixTree::turnovers_since(const Node& owner) const {
  return static_cast<double>(now_ - owner.touched_at) / static_cast<double>(1 + node_count_);
}

double PrefixTree::value_of(std::int64_t saved_tokens, double weight) {
  return static_cast<double>(saved_tokens) * weight;
}

double PrefixTree::value_of(const Node& owner) const {
  std::int64_t saved_blocks = 1;
  const Node* above = &node(owner.parent);
  while (above->depth > 0 && !above->checkpoint && saved_blocks < kSavedBlocksMax) {
    above = &node(above->parent);
    ++saved_blocks;
  }
  const double age = 1.0 + turnovers_since(owner);
  return value_of(saved_blocks * kPrefixBlockTokens, owner.weight) * (1.0 + owner.uses) /
         (age * age);
}

std::vector<NodeId> PrefixTree::checkpoints_by_value() const {
  std::vector<Cheapest> found;
  found.reserve(static_cast<std::size_t>(checkpoint_count()));
  for (std::size_t i = 0; i < nodes_.size(); ++i) {
    if (const Node& owner = nodes_[i]; owner.exists && owner.checkpoint) {
      constexpr double kBeyondAll = std::numeric_limits<double>::infinity();
      found.push_back(
          {.node = static_cast<NodeId>(i), .value = owner.kept ? kBeyondAll : value_of(owner)});
    }
  }
  std::ranges::sort(found, {}, [](const Cheapest& c) { return std::pair(-c.value, c.node); });
  std::vector<NodeId> nodes(found.size());
  std::ranges::transform(found, nodes.begin(), &Cheapest::node);
  return nodes;
}

std::optional<PrefixTree::Cheapest> PrefixTree::cheapest_checkpoint() {
  std::optional<Cheapest> cheapest;
  auto candidate = candidates_.lower_bound(next_candidate_);
  const auto count = std::min<std::int64_t>(kCandidatesMax, std::ssize(candidates_));
  for (std::int64_t i = 0; i < count; ++i, ++candidate) {
    if (candidate == candidates_.end()) {
      candidate = candidates_.begin();
    }
    const double value = value_of(node(*candidate));
    if (!cheapest || value < cheapest->value) {
      cheapest = Cheapest{.node = *candidate, .value = value};
    }
  }
  next_candidate_ = candidate == candidates_.end() ? 0 : *candidate;
  return cheapest;
}

std::optional<NodeId> PrefixTree::dead_leaf() const {
  if (dead_leaves_.empty()) {
    return std::nullopt;
  }
  return dead_leaves_.begin()->second;
}

BlockId PrefixTree::remove(NodeId id) {
  SLUICE_CHECK(is_dead(node(id)));
  unlist(id);
  const Node removed = node(id);
  const auto [begin, end] = by_hash_.equal_range(hash(removed.parent, removed.tokens));
  by_hash_.erase(std::find_if(begin, end, [id](const auto& entry) { return entry.second == id; }));
  unlink_from_parent(id);
  nodes_[static_cast<std::size_t>(id)].exists = false;
  unused_.push_back(id);
  --node_count_;
  list_if_dead(removed.parent);
  drop_root_if_idle(removed.parent);
  return removed.block;
}

// The children of a node are as many as it says, in one chain that can be walked both ways.
void PrefixTree::check_siblings(NodeId id) const {
  std::int32_t children = 0;
  NodeId later = kNone;
  for (NodeId child = node(id).last_child; child != kNone; child = node(child).earlier_sibling) {
    SLUICE_CHECK(node(child).parent == id);
    SLUICE_CHECK(node(child).later_sibling == later);
    ++children;
    SLUICE_CHECK(children <= node(id).children);
    later = child;
  }
  SLUICE_CHECK(children == node(id).children);
}

// Every node knows how many kept ones it leads to.
void PrefixTree::check_kept() const {
  std::vector<std::int32_t> below(nodes_.size());
  std::int64_t kept = 0;
  std::int64_t path = 0;
  for (std::size_t i = 0; i < nodes_.size(); ++i) {
    if (!nodes_[i].exists || !nodes_[i].kept) {
      continue;
    }
    SLUICE_CHECK(nodes_[i].checkpoint.has_value());
    ++kept;
    for (auto above = static_cast<NodeId>(i); node(above).depth > 0; above = node(above).parent) {
      path += below[static_cast<std::size_t>(above)]++ == 0 ? 1 : 0;
    }
  }
  SLUICE_CHECK(kept == kept_count_);
  SLUICE_CHECK(path == kept_path_count_);
  for (std::size_t i = 0; i < nodes_.size(); ++i) {
    SLUICE_CHECK(!nodes_[i].exists || nodes_[i].kept_below == below[i]);
  }
}

void PrefixTree::check_invariants() const {
  std::int64_t roots = 0;
  std::int64_t dead = 0;
  std::int64_t checkpoints = 0;
  std::int64_t children = 0;
  for (std::size_t i = 0; i < nodes_.size(); ++i) {
    const Node& entry = nodes_[i];
    const auto id = static_cast<NodeId>(i);
    if (!entry.exists) {
      continue;
    }
    check_siblings(id);
    children += entry.children;
    if (entry.depth == 0) {
      ++roots;
      SLUICE_CHECK(!entry.checkpoint);
      SLUICE_CHECK(entry.children > 0 || entry.pins > 0);
      continue;
    }
    SLUICE_CHECK(entry.depth == node(entry.parent).depth + 1);
    SLUICE_CHECK(find(entry.parent, entry.tokens) == id);
    SLUICE_CHECK(dead_leaves_.contains({entry.touched_at, id}) == is_dead(entry));
    SLUICE_CHECK(candidates_.contains(id) == (entry.checkpoint.has_value() && !entry.kept));
    dead += is_dead(entry) ? 1 : 0;
    checkpoints += entry.checkpoint ? 1 : 0;
  }
  check_kept();
  SLUICE_CHECK(children == node_count_);
  SLUICE_CHECK(std::ssize(dead_leaves_) == dead);
  SLUICE_CHECK(checkpoint_count() == checkpoints);
  SLUICE_CHECK(std::ssize(roots_) == roots);
  SLUICE_CHECK(std::ssize(salt_of_root_) == roots);
  SLUICE_CHECK(std::ssize(by_hash_) == node_count_);
  SLUICE_CHECK(std::ssize(nodes_) - std::ssize(unused_) == node_count_ + roots);
}

}  // namespace sluice
