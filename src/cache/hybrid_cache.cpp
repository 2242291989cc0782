#include "cache/hybrid_cache.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "base/check.h"
#include "base/checked_math.h"

namespace sluice {
namespace {

constexpr double kAnyValue = std::numeric_limits<double>::infinity();

// Items the budget for reuse can hold. Items without content cost nothing: as many as run.
std::int64_t reusable_count(std::size_t reuse_bytes, std::size_t item_bytes, std::int64_t running) {
  return item_bytes == 0 ? running : static_cast<std::int64_t>(reuse_bytes / item_bytes);
}

}  // namespace

Result<HybridCache> HybridCache::create(const HybridCacheShape& shape) {
  BlockPool blocks = SLUICE_TRY(
      BlockPool::create({.block_bytes = shape.block_bytes,
                         .block_count = shape.running_block_count +
                                        reusable_count(shape.reuse_bytes, shape.block_bytes,
                                                       shape.running_block_count)}));
  StatePool slots = SLUICE_TRY(StatePool::create(
      {.slot_bytes = shape.slot_bytes,
       .slot_count = shape.running_slot_count + reusable_count(shape.reuse_bytes, shape.slot_bytes,
                                                               shape.running_slot_count)}));
  return HybridCache(shape, std::move(blocks), std::move(slots));
}

HybridCache::HybridCache(const HybridCacheShape& shape, BlockPool blocks, StatePool slots)
    : shape_(shape), blocks_(std::move(blocks)), slots_(std::move(slots)), tree_(shape.hash_key) {}

void HybridCache::open(SequenceCache& sequence, std::string_view salt) {
  SLUICE_CHECK(open_count_ < shape_.running_slot_count);
  SLUICE_CHECK(sequence.block_table.empty());
  ++open_count_;
  sequence.state_slot = allocate_slot();
  sequence.node = tree_.root(salt);
  sequence.shared_blocks = 0;
  sequence.last_checkpoint = 0;
  tree_.pin(sequence.node);
}

void HybridCache::close(SequenceCache& sequence) {
  for (const BlockId block : sequence.block_table) {
    blocks_.release(block);
  }
  sequence.block_table.clear();
  slots_.free(sequence.state_slot);
  tree_.unpin(sequence.node);
  --open_count_;
}

PrefixReuse HybridCache::resume(SequenceCache& sequence, std::span<const std::int32_t> tokens) {
  SLUICE_CHECK(sequence.block_table.empty());
  const PrefixTree::Match match = tree_.match(sequence.node, tokens);
  const PrefixReuse reuse = reuse_of(match, sequence.node, tokens);
  std::byte* state = slot(sequence.state_slot);
  if (match.tokens == 0) {
    std::fill_n(state, shape_.slot_bytes, std::byte{0});
    return reuse;
  }
  tree_.pin(match.node);
  tree_.unpin(sequence.node);
  sequence.node = match.node;
  sequence.shared_blocks = tree_.depth(match.node);
  sequence.last_checkpoint = match.tokens;
  sequence.block_table.resize(static_cast<std::size_t>(sequence.shared_blocks));
  NodeId node = match.node;
  for (std::size_t i = sequence.block_table.size(); i-- > 0; node = tree_.parent(node)) {
    sequence.block_table[i] = tree_.block(node);
    blocks_.acquire(sequence.block_table[i]);
  }
  tree_.use_checkpoint(match.node);
  std::copy_n(slot(*tree_.checkpoint(match.node)), shape_.slot_bytes, state);
  return reuse;
}

PrefixReuse HybridCache::reuse_of(const PrefixTree::Match& match, NodeId root,
                                  std::span<const std::int32_t> tokens) const {
  PrefixReuse reuse{.tokens = match.tokens,
                    .kv_tokens = match.kv_tokens,
                    .salt_known = tree_.has_children(root),
                    .state_evicted = match.evicted};
  const auto rest = tokens.subspan(static_cast<std::size_t>(match.kv_tokens));
  if (std::ssize(rest) >= kPrefixBlockTokens) {
    if (const auto shared = tree_.shared_with_children(match.deepest, rest)) {
      reuse.diverged_at = match.kv_tokens + *shared;
    }
  }
  return reuse;
}

std::int64_t HybridCache::known_tokens(const SequenceCache& sequence,
                                       std::span<const std::int32_t> tokens) const {
  return tree_.match(sequence.node, tokens).tokens;
}

void HybridCache::grow(SequenceCache& sequence, std::int64_t token_count) {
  while (std::ssize(sequence.block_table) < ceil_div(token_count, kPrefixBlockTokens)) {
    sequence.block_table.push_back(allocate_block());
  }
}

void HybridCache::share(SequenceCache& sequence, std::span<const std::int32_t> tokens,
                        std::int64_t computed_count) {
  if (!keeps_prefixes()) {
    return;
  }
  SLUICE_CHECK(computed_count <= std::ssize(tokens));
  for (; (sequence.shared_blocks + 1) * kPrefixBlockTokens <= computed_count;
       ++sequence.shared_blocks) {
    const auto index = static_cast<std::size_t>(sequence.shared_blocks);
    const auto own = tokens.subspan(index * static_cast<std::size_t>(kPrefixBlockTokens),
                                    static_cast<std::size_t>(kPrefixBlockTokens));
    BlockId& block = sequence.block_table[index];
    std::optional<NodeId> child = tree_.find(sequence.node, own);
    if (child) {
      blocks_.release(block);
      block = tree_.block(*child);
    } else {
      child = tree_.add(sequence.node, own, block);
    }
    blocks_.acquire(block);
    tree_.pin(*child);
    tree_.unpin(sequence.node);
    sequence.node = *child;
  }
}

std::optional<SlotId> HybridCache::reserve_checkpoint(SequenceCache& sequence,
                                                      std::int64_t token_count, double weight) {
  if (!keeps_prefixes()) {
    return std::nullopt;
  }
  const double value = PrefixTree::value_of(token_count - last_checkpoint_of(sequence), weight);
  while (!has_room_for(0, 1)) {
    if (!evict_below(value)) {
      return std::nullopt;
    }
  }
  sequence.last_checkpoint = token_count;
  return allocate_slot();
}

SlotId HybridCache::keep_checkpoint(const SequenceCache& sequence, std::int64_t token_count,
                                    SlotId slot, double weight) {
  const NodeId node = node_at(sequence, token_count);
  if (const std::optional<SlotId> known = tree_.checkpoint(node)) {
    slots_.free(slot);
    tree_.use_checkpoint(node, weight);
    return *known;
  }
  tree_.set_checkpoint(node, slot, weight);
  return slot;
}

void HybridCache::drop_unused_checkpoint(const SequenceCache& sequence, std::int64_t token_count,
                                         SlotId slot) {
  const NodeId node = node_at(sequence, token_count);
  if (tree_.checkpoint(node) == slot && !tree_.is_used(node) && !tree_.is_kept(node)) {
    slots_.free(tree_.take_checkpoint(node));
  }
}

// The last one made may be gone again: then the nearest above it.
std::int64_t HybridCache::last_checkpoint_of(const SequenceCache& sequence) const {
  const std::int64_t last = sequence.last_checkpoint;
  if (last == 0 || last > sequence.shared_blocks * kPrefixBlockTokens) {
    return last;  // none, or made in this step
  }
  NodeId node = node_at(sequence, last);
  while (tree_.depth(node) > 0 && !tree_.checkpoint(node)) {
    node = tree_.parent(node);
  }
  return tree_.depth(node) * kPrefixBlockTokens;
}

std::expected<NodeId, PinRefusal> HybridCache::pin(std::string_view salt,
                                                   std::span<const std::int32_t> tokens) {
  constexpr auto kBlock = static_cast<std::size_t>(kPrefixBlockTokens);
  SLUICE_CHECK(!tokens.empty());
  SLUICE_CHECK(tokens.size() % kBlock == 0);
  std::optional<NodeId> node = tree_.find_root(salt);
  std::int64_t new_blocks = 0;
  for (std::size_t at = 0; at < tokens.size(); at += kBlock) {
    node = node ? tree_.find(*node, tokens.subspan(at, kBlock)) : std::nullopt;
    new_blocks += node && tree_.leads_to_kept(*node) ? 0 : 1;
  }
  if (node && tree_.is_kept(*node)) {
    return *node;
  }
  PinRefusal refusal{.over_budget = !can_pin(new_blocks, 1),
                     .bytes_wanted = static_cast<std::size_t>(new_blocks) * shape_.block_bytes +
                                     shape_.slot_bytes};
  if (refusal.over_budget || !node || !tree_.checkpoint(*node)) {
    return std::unexpected(refusal);
  }
  tree_.keep(*node);
  return *node;
}

void HybridCache::unpin(NodeId pinned) {
  tree_.release(pinned);
}

// Items without content cost no bytes, but there are only so many.
bool HybridCache::can_pin(std::int64_t new_blocks, std::int64_t new_slots) const {
  const std::int64_t blocks = tree_.kept_path_count() + new_blocks;
  const std::int64_t slots = tree_.kept_count() + new_slots;
  const std::int64_t blocks_max = (blocks_.block_count() - shape_.running_block_count) / 2;
  const std::int64_t slots_max = (slots_.slot_count() - shape_.running_slot_count) / 2;
  return keeps_prefixes() && blocks <= blocks_max && slots <= slots_max &&
         static_cast<std::size_t>(blocks) * shape_.block_bytes +
                 static_cast<std::size_t>(slots) * shape_.slot_bytes <=
             pinned_bytes_max();
}

std::size_t HybridCache::pin_bytes(NodeId pinned) const {
  return static_cast<std::size_t>(tree_.depth(pinned)) * shape_.block_bytes + shape_.slot_bytes;
}

std::size_t HybridCache::pinned_bytes() const {
  return static_cast<std::size_t>(tree_.kept_path_count()) * shape_.block_bytes +
         static_cast<std::size_t>(tree_.kept_count()) * shape_.slot_bytes;
}

std::vector<NodeId> HybridCache::pinned_on_path(const SequenceCache& sequence) const {
  std::vector<NodeId> pinned;
  for (NodeId node = sequence.node; tree_.depth(node) > 0; node = tree_.parent(node)) {
    if (tree_.is_kept(node)) {
      pinned.push_back(node);
    }
  }
  return pinned;
}

CacheFreed HybridCache::forget() {
  const CacheUse before = use();
  while (const auto cheapest = tree_.cheapest_checkpoint()) {
    slots_.free(tree_.take_checkpoint(cheapest->node));
  }
  while (const std::optional<NodeId> leaf = tree_.dead_leaf()) {
    blocks_.release(tree_.remove(*leaf));
  }
  return freed_since(before);
}

CacheFreed HybridCache::forget(std::string_view salt) {
  const CacheUse before = use();
  const std::optional<NodeId> root = tree_.find_root(salt);
  for (const NodeId node : root ? tree_.below(*root) : std::vector<NodeId>()) {
    if (tree_.checkpoint(node) && !tree_.is_kept(node)) {
      slots_.free(tree_.take_checkpoint(node));
    }
    if (tree_.is_dead(node)) {
      blocks_.release(tree_.remove(node));
    }
  }
  return freed_since(before);
}

CacheFreed HybridCache::freed_since(const CacheUse& before) {
  while (blocks_.discard_free()) {
  }
  while (slots_.discard_free()) {
  }
  const CacheUse now = use();
  return {.block_count = before.shared_block_count - now.shared_block_count,
          .checkpoint_count = before.checkpoint_count - now.checkpoint_count,
          .bytes = before.bytes - now.bytes};
}

NodeId HybridCache::node_at(const SequenceCache& sequence, std::int64_t token_count) const {
  SLUICE_CHECK(token_count % kPrefixBlockTokens == 0);
  const std::int64_t depth = token_count / kPrefixBlockTokens;
  SLUICE_CHECK(depth >= 1);
  SLUICE_CHECK(depth <= sequence.shared_blocks);
  NodeId node = sequence.node;
  while (tree_.depth(node) > depth) {
    node = tree_.parent(node);
  }
  return node;
}

std::size_t HybridCache::used_bytes() const {
  return static_cast<std::size_t>(blocks_.used_count()) * shape_.block_bytes +
         static_cast<std::size_t>(slots_.used_count()) * shape_.slot_bytes;
}

std::size_t HybridCache::resident_bytes() const {
  return static_cast<std::size_t>(blocks_.resident_count()) * shape_.block_bytes +
         static_cast<std::size_t>(slots_.resident_count()) * shape_.slot_bytes;
}

std::size_t HybridCache::bytes_max() const {
  return static_cast<std::size_t>(shape_.running_block_count) * shape_.block_bytes +
         static_cast<std::size_t>(shape_.running_slot_count) * shape_.slot_bytes +
         shape_.reuse_bytes;
}

bool HybridCache::has_room_for(std::int64_t blocks, std::int64_t slots) const {
  return blocks_.free_count() >= blocks && slots_.free_count() >= slots &&
         used_bytes() + static_cast<std::size_t>(blocks) * shape_.block_bytes +
                 static_cast<std::size_t>(slots) * shape_.slot_bytes <=
             bytes_max();
}

bool HybridCache::evict_below(double value) {
  if (const std::optional<NodeId> leaf = tree_.dead_leaf()) {
    blocks_.release(tree_.remove(*leaf));
    ++evicted_blocks_;
    return true;
  }
  const std::optional<PrefixTree::Cheapest> cheapest = tree_.cheapest_checkpoint();
  if (!cheapest || cheapest->value >= value) {
    return false;
  }
  slots_.free(tree_.evict_checkpoint(cheapest->node));
  ++evicted_checkpoints_;
  return true;
}

// What running sequences hold is within what they were promised, so beyond it there is always
// something of the tree's alone. Free items keep their pages for the next user of their kind; an
// item of the other kind takes them over when the budget is full.
BlockId HybridCache::allocate_block() {
  while (!has_room_for(1, 0)) {
    SLUICE_CHECK(evict_below(kAnyValue));
  }
  if (blocks_.resident_count() == blocks_.used_count()) {
    while (resident_bytes() + shape_.block_bytes > bytes_max() && slots_.discard_free()) {
    }
  }
  return *blocks_.allocate();
}

SlotId HybridCache::allocate_slot() {
  while (!has_room_for(0, 1)) {
    SLUICE_CHECK(evict_below(kAnyValue));
  }
  if (slots_.resident_count() == slots_.used_count()) {
    while (resident_bytes() + shape_.slot_bytes > bytes_max() && blocks_.discard_free()) {
    }
  }
  return *slots_.allocate(Contents::any);
}

CacheUse HybridCache::use() const {
  return {.block_count = blocks_.used_count(),
          .slot_count = slots_.used_count(),
          .shared_block_count = tree_.node_count(),
          .checkpoint_count = tree_.checkpoint_count(),
          .bytes = used_bytes(),
          .block_bytes = static_cast<std::size_t>(blocks_.used_count()) * shape_.block_bytes,
          .bytes_max = bytes_max(),
          .shared_bytes = static_cast<std::size_t>(tree_.node_count()) * shape_.block_bytes +
                          static_cast<std::size_t>(tree_.checkpoint_count()) * shape_.slot_bytes,
          .pinned_count = tree_.kept_count(),
          .pinned_bytes = pinned_bytes(),
          .evicted_block_count = evicted_blocks_,
          .evicted_checkpoint_count = evicted_checkpoints_};
}

void HybridCache::check_invariants() const {
  blocks_.check_invariants();
  slots_.check_invariants();
  tree_.check_invariants();
  SLUICE_CHECK(used_bytes() <= resident_bytes());
  SLUICE_CHECK(resident_bytes() <= bytes_max());
  SLUICE_CHECK(slots_.used_count() == open_count_ + tree_.checkpoint_count());
  SLUICE_CHECK(pinned_bytes() <= pinned_bytes_max());
}

}  // namespace sluice
