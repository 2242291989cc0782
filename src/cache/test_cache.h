// For tests: a small cache, and prefixes stored in it without a model.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cache/hybrid_cache.h"

namespace sluice {

using Tokens = std::vector<std::int32_t>;

// Names 'a', 'b', ... from a first number down.
class TestNames final : public TokenNames {
 public:
  explicit TestNames(std::int32_t first = -1, char forgotten = 0)
      : first_(first), forgotten_(forgotten) {}

  std::optional<std::string> content_of(std::int32_t name) const override {
    const auto letter = static_cast<char>('a' + first_ - name);
    return letter == forgotten_ ? std::nullopt : std::optional(std::string(1, letter));
  }
  std::optional<std::int32_t> name_of(std::string_view content) override {
    return content.size() == 1 ? std::optional(first_ - (content[0] - 'a')) : std::nullopt;
  }

 private:
  std::int32_t first_;
  char forgotten_;
};

// Room for 40 blocks and slots of kept prefixes, 20 of them pinned.
inline constexpr HybridCacheShape kSmall{.block_bytes = 64,
                                         .slot_bytes = 64,
                                         .running_block_count = 20,
                                         .running_slot_count = 2,
                                         .reuse_bytes = 64 * 40,
                                         .hash_key = 7};

// Computes all tokens, with states kept after the given counts if there is room. How many were.
inline std::size_t store(HybridCache& cache, const Tokens& tokens,
                         const std::vector<std::int64_t>& states, const std::string& salt = "",
                         double weight = 1.0) {
  SequenceCache sequence;
  cache.open(sequence, salt);
  cache.resume(sequence, {});
  cache.grow(sequence, std::ssize(tokens));
  std::map<std::int64_t, SlotId> slots;
  for (const std::int64_t count : states) {
    if (const auto slot = cache.reserve_checkpoint(sequence, count, weight)) {
      slots[count] = *slot;
    }
  }
  cache.share(sequence, tokens, std::ssize(tokens));
  for (const auto& [count, slot] : slots) {
    cache.keep_checkpoint(sequence, count, slot, weight);
  }
  cache.close(sequence);
  cache.check_invariants();
  return slots.size();
}

// A sequence that begins with these tokens, and ends at once.
inline PrefixReuse look_up(HybridCache& cache, const Tokens& tokens, const std::string& salt = "") {
  SequenceCache sequence;
  cache.open(sequence, salt);
  const PrefixReuse reuse = cache.resume(sequence, tokens);
  cache.close(sequence);
  cache.check_invariants();
  return reuse;
}

}  // namespace sluice
