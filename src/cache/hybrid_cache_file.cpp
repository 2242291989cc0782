// Saving what is kept to a file and adding it again: HybridCache::save() and load(). Both copy
// between the pools and the file, item by item; beside that they take memory for the tokens only.
#include <algorithm>
#include <map>
#include <random>
#include <unordered_map>
#include <utility>

#include "base/check.h"
#include "cache/cache_file.h"
#include "cache/hybrid_cache.h"

namespace sluice {
namespace {

// Number of each node and state in the file, and the node here that it is.
struct SavePlan {
  CacheFileIndex index;
  std::vector<NodeId> nodes;
  std::vector<NodeId> checkpoints;
};

class SavePlanner {
 public:
  SavePlanner(const PrefixTree& tree, const TokenNames& names) : tree_(tree), names_(names) {}

  // The state after a node and all blocks up to it.
  void add(NodeId checkpoint) {
    std::vector<NodeId> path;  // from the checkpoint up
    NodeId node = checkpoint;
    for (; tree_.depth(node) > 0 && !number_.contains(node); node = tree_.parent(node)) {
      if (!add_names(node)) {
        return;
      }
      path.push_back(node);
    }
    std::int32_t parent = tree_.depth(node) > 0 ? number_.at(node) : -1 - namespace_of(node);
    for (std::size_t i = path.size(); i-- > 0;) {
      CacheFileIndex::Node& added = plan_.index.nodes.emplace_back();
      added.parent = parent;
      std::ranges::copy(tree_.tokens(path[i]), added.tokens.begin());
      plan_.nodes.push_back(path[i]);
      parent = static_cast<std::int32_t>(plan_.index.nodes.size() - 1);
      number_.emplace(path[i], parent);
    }
    plan_.index.checkpoints.push_back(
        {.node = parent, .weight = tree_.weight(checkpoint), .uses = tree_.uses(checkpoint)});
    plan_.checkpoints.push_back(checkpoint);
  }

  void add(std::span<const CacheFilePin> pins) {
    std::unordered_map<NodeId, std::int32_t> checkpoint_of;
    for (std::size_t i = 0; i < plan_.checkpoints.size(); ++i) {
      checkpoint_of.emplace(plan_.checkpoints[i], static_cast<std::int32_t>(i));
    }
    for (const CacheFilePin& pin : pins) {
      if (!checkpoint_of.contains(pin.node)) {
        continue;  // with a name nobody knows
      }
      plan_.index.pins.push_back({.checkpoint = checkpoint_of.at(pin.node),
                                  .id = pin.id,
                                  .name = pin.name,
                                  .seconds_left = pin.seconds_left});
    }
  }

  SavePlan take() {
    for (auto& [token, content] : contents_) {
      plan_.index.names.push_back({.token = token, .content = std::move(content)});
    }
    return std::move(plan_);
  }

 private:
  // False when the node has one that nobody knows.
  bool add_names(NodeId node) {
    for (const std::int32_t token : tree_.tokens(node)) {
      if (token >= 0 || contents_.contains(token)) {
        continue;
      }
      auto content = names_.content_of(token);
      if (!content) {
        return false;
      }
      contents_.emplace(token, *std::move(content));
    }
    return true;
  }

  std::int32_t namespace_of(NodeId root) {
    const auto [entry, is_new] =
        namespaces_.try_emplace(root, static_cast<std::int32_t>(plan_.index.namespaces.size()));
    if (is_new) {
      plan_.index.namespaces.push_back(tree_.salt(root));
    }
    return entry->second;
  }

  const PrefixTree& tree_;
  const TokenNames& names_;
  SavePlan plan_;
  std::map<std::int32_t, std::string> contents_;  // of the names in it
  std::unordered_map<NodeId, std::int32_t> number_;
  std::unordered_map<NodeId, std::int32_t> namespaces_;
};

// The numbers of a checkpoint's nodes in the file, from its root down.
std::vector<std::size_t> path_in_file(const CacheFileIndex& index, std::size_t checkpoint) {
  std::vector<std::size_t> path;
  for (std::int32_t node = index.checkpoints[checkpoint].node; node >= 0;
       node = index.nodes[static_cast<std::size_t>(node)].parent) {
    path.push_back(static_cast<std::size_t>(node));
  }
  std::ranges::reverse(path);
  return path;
}

const std::string& salt_in_file(const CacheFileIndex& index, std::size_t first_node) {
  return index.namespaces[static_cast<std::size_t>(-1 - index.nodes[first_node].parent)];
}

std::uint64_t random_id() {
  std::random_device random;
  return (std::uint64_t{random()} << 32) | random();
}

}  // namespace

Result<CacheMoved> HybridCache::save(const std::filesystem::path& path,
                                     const CacheIdentity& identity,
                                     std::span<const CacheFilePin> pins,
                                     const TokenNames& names) const {
  SavePlanner planner(tree_, names);
  for (const NodeId checkpoint : tree_.checkpoints_by_value()) {
    planner.add(checkpoint);
  }
  planner.add(pins);
  SavePlan plan = planner.take();
  plan.index.identity = identity;
  plan.index.block_bytes = shape_.block_bytes;
  plan.index.slot_bytes = shape_.slot_bytes;
  CacheFileWriter file = SLUICE_TRY(CacheFileWriter::create(path, plan.index, random_id()));
  for (const NodeId node : plan.nodes) {
    const auto block = static_cast<std::size_t>(tree_.block(node));
    SLUICE_TRY(file.write({blocks_.data() + block * shape_.block_bytes, shape_.block_bytes}));
  }
  for (const NodeId node : plan.checkpoints) {
    const auto slot = static_cast<std::size_t>(*tree_.checkpoint(node));
    SLUICE_TRY(file.write({slots_.data() + slot * shape_.slot_bytes, shape_.slot_bytes}));
  }
  SLUICE_TRY(file.commit());
  return CacheMoved{.block_count = std::ssize(plan.nodes),
                    .checkpoint_count = std::ssize(plan.checkpoints),
                    .bytes = plan.nodes.size() * shape_.block_bytes +
                             plan.checkpoints.size() * shape_.slot_bytes};
}

// One file on its way into the cache. What it added is taken back when a part turns out damaged.
class CacheFileLoad {
 public:
  CacheFileLoad(HybridCache& cache, const CacheFileReader& file)
      : cache_(cache), tree_(cache.tree_), file_(file), index_(file.index()) {}

  Result<CacheMoved> run() {
    for (std::size_t i = 0; i < index_.checkpoints.size(); ++i) {
      const auto loaded = load(i);
      if (!loaded) {
        take_back();
        return std::unexpected(loaded.error());
      }
    }
    // The most valuable one was used last.
    for (std::size_t i = states_.size(); i-- > 0;) {
      tree_.set_uses(states_[i].node, index_.checkpoints[states_[i].checkpoint].uses);
    }
    return CacheMoved{.block_count = std::ssize(nodes_),
                      .checkpoint_count = std::ssize(states_),
                      .bytes = nodes_.size() * cache_.shape_.block_bytes +
                               states_.size() * cache_.shape_.slot_bytes};
  }

  // Those of what is stored now.
  std::vector<LoadedPin> pins() const {
    std::vector<LoadedPin> pins;
    for (const CacheFileIndex::Pin& label : index_.pins) {
      const auto path = path_in_file(index_, static_cast<std::size_t>(label.checkpoint));
      LoadedPin pin{.salt = salt_in_file(index_, path.front()), .label = label};
      for (const std::size_t number : path) {
        const auto& tokens = index_.nodes[number].tokens;
        pin.tokens.insert(pin.tokens.end(), tokens.begin(), tokens.end());
      }
      const auto root = tree_.find_root(pin.salt);
      if (root && tree_.match(*root, pin.tokens).tokens == std::ssize(pin.tokens)) {
        pins.push_back(std::move(pin));
      }
    }
    return pins;
  }

 private:
  struct State {
    NodeId node;
    std::size_t checkpoint;  // in the file
  };

  // What is missing of a state and the blocks up to it.
  struct Missing {
    std::int64_t blocks = 0;
    std::int64_t states = 0;
  };

  // One state with the blocks up to it: all of them or, without room, nothing is read.
  Result<void> load(std::size_t checkpoint) {
    const auto path = path_in_file(index_, checkpoint);
    const std::string_view salt = salt_in_file(index_, path.front());
    if (!make_room(path, salt)) {
      return {};
    }
    const NodeId root = tree_.root(salt);
    tree_.pin(root);  // it may have nothing yet
    const auto added = add_path(path, root, checkpoint);
    tree_.unpin(root);
    return added;
  }

  Result<void> add_path(std::span<const std::size_t> path, NodeId root, std::size_t checkpoint) {
    NodeId node = root;
    for (const std::size_t number : path) {
      if (const auto child = tree_.find(node, index_.nodes[number].tokens)) {
        node = *child;
      } else {
        node = SLUICE_TRY(add_block(number, node));
      }
    }
    return tree_.checkpoint(node) ? Result<void>() : add_state(checkpoint, node);
  }

  // Whether what is missing fits once what nobody can use is gone.
  bool make_room(std::span<const std::size_t> path, std::string_view salt) {
    Missing missing = missing_of(path, salt);
    while (!cache_.has_room_for(missing.blocks, missing.states)) {
      if (!cache_.evict_below(0.0)) {
        return false;
      }
      missing = missing_of(path, salt);  // that may have been part of it
    }
    return true;
  }

  Missing missing_of(std::span<const std::size_t> path, std::string_view salt) const {
    std::optional<NodeId> node = tree_.find_root(salt);
    std::size_t known = 0;
    while (node && known < path.size()) {
      node = tree_.find(*node, index_.nodes[path[known]].tokens);
      known += node ? 1 : 0;
    }
    return {.blocks = static_cast<std::int64_t>(path.size() - known),
            .states = node && tree_.checkpoint(*node) ? 0 : 1};
  }

  // A child of `parent`, at the end of nodes_. There is room.
  Result<NodeId> add_block(std::size_t number, NodeId parent) {
    const BlockId block = cache_.allocate_block();
    const auto read = file_.read_block(
        number,
        {cache_.blocks_.data() + static_cast<std::size_t>(block) * cache_.shape_.block_bytes,
         cache_.shape_.block_bytes});
    if (!read) {
      cache_.blocks_.release(block);
      return std::unexpected(read.error());
    }
    nodes_.push_back(tree_.add(parent, index_.nodes[number].tokens, block));
    return nodes_.back();
  }

  // There is room.
  Result<void> add_state(std::size_t checkpoint, NodeId node) {
    const SlotId slot = cache_.allocate_slot();
    const auto read = file_.read_state(checkpoint, {cache_.slot(slot), cache_.shape_.slot_bytes});
    if (!read) {
      cache_.slots_.free(slot);
      return std::unexpected(read.error());
    }
    tree_.set_checkpoint(node, slot, index_.checkpoints[checkpoint].weight);
    states_.push_back({.node = node, .checkpoint = checkpoint});
    return {};
  }

  void take_back() {
    for (const State& state : states_) {
      cache_.slots_.free(tree_.take_checkpoint(state.node));
    }
    states_.clear();
    for (; !nodes_.empty(); nodes_.pop_back()) {
      cache_.blocks_.release(tree_.remove(nodes_.back()));
    }
  }

  HybridCache& cache_;
  PrefixTree& tree_;
  const CacheFileReader& file_;
  const CacheFileIndex& index_;
  std::vector<NodeId> nodes_;  // added, parents before children
  std::vector<State> states_;  // added, most valuable first
};

Result<CacheMoved> HybridCache::load(const std::filesystem::path& path,
                                     const CacheIdentity& identity, std::vector<LoadedPin>& pins,
                                     TokenNames& names) {
  CacheFileReader file = SLUICE_TRY(CacheFileReader::open(path));
  const CacheFileIndex& index = file.index();
  SLUICE_TRY(check_cache_identity(index.identity, identity));
  const auto sizes = [](std::size_t block_bytes, std::size_t slot_bytes) {
    return CacheIdentity{{"bytes of a KV block", std::to_string(block_bytes)},
                         {"bytes of a state", std::to_string(slot_bytes)}};
  };
  SLUICE_TRY(check_cache_identity(sizes(index.block_bytes, index.slot_bytes),
                                  sizes(shape_.block_bytes, shape_.slot_bytes)));
  if (!keeps_prefixes()) {
    return CacheMoved{};
  }
  SLUICE_TRY(file.rename(names));
  CacheFileLoad load(*this, file);
  const CacheMoved moved = SLUICE_TRY(load.run());
  pins = load.pins();
  return moved;
}

}  // namespace sluice
