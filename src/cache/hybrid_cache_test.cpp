// HybridCache under random programs. Blocks and slots are filled with a hash of all tokens up to
// their end, as a model would do, so whatever is handed out for a prefix shows whether it belongs
// to that prefix and salt.
#include "cache/hybrid_cache.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <map>
#include <random>
#include <set>
#include <string>

#include "base/checked_math.h"
#include "cache/test_cache.h"
#include "cache/test_files.h"

namespace sluice {
namespace {

constexpr std::size_t kBlockBytes = 8192;  // some whole pages, so that pages are given back
constexpr std::size_t kSlotBytes = 12288;

std::uint64_t content_of(const std::string& salt, std::span<const std::int32_t> tokens) {
  std::uint64_t hash = std::hash<std::string>()(salt);
  for (const std::int32_t token : tokens) {
    hash = (hash ^ static_cast<std::uint64_t>(token)) * 0x9e3779b97f4a7c15U;
    hash ^= hash >> 29;
  }
  return hash | 1U;
}

void fill(std::byte* item, std::size_t bytes, std::uint64_t content) {
  for (std::size_t at = 0; at < bytes; at += sizeof content) {
    std::memcpy(item + at, &content, sizeof content);
  }
}

bool holds(const std::byte* item, std::size_t bytes, std::uint64_t content) {
  for (std::size_t at = 0; at < bytes; at += sizeof content) {
    if (std::memcmp(item + at, &content, sizeof content) != 0) {
      return false;
    }
  }
  return true;
}

// One running sequence, and its part in filling the memory.
struct Runner {
  std::string salt;
  Tokens tokens;
  std::int64_t computed = 0;
  std::int64_t promised_blocks = 0;
  SequenceCache cache;
};

class Program {
 public:
  // `file`: where to save to and load from now and then.
  Program(std::uint64_t seed, std::size_t reuse_bytes, std::filesystem::path file)
      : random_(seed),
        file_(std::move(file)),
        shape_{.block_bytes = kBlockBytes,
               .slot_bytes = kSlotBytes,
               .running_block_count = 30,
               .running_slot_count = 5,
               .reuse_bytes = reuse_bytes,
               .hash_key = seed},
        cache_(HybridCache::create(shape_).value()) {}

  void run(int steps) {
    for (int i = 0; i < steps; ++i) {
      switch (below(6)) {
        case 0:
        case 1:
          start();
          break;
        case 2:
          if (!runners_.empty()) {
            stop(below(std::ssize(runners_)));
          }
          break;
        default:
          compute();
      }
      if (below(200) == 0) {
        forget();
      }
      if (below(8) == 0) {
        pin_or_unpin();
      }
      if (below(60) == 0) {
        save_or_load();
      }
      cache_.check_invariants();
      check_pins();
      if (::testing::Test::HasFatalFailure()) {
        return;
      }
    }
    while (!runners_.empty()) {
      stop(0);
    }
    EXPECT_EQ(cache_.use().slot_count, cache_.use().checkpoint_count);
    cache_.forget();
    EXPECT_EQ(cache_.use().bytes, pinned_bytes(pins_));
    check_pins();
    for (const auto& [prefix, node] : pins_) {
      cache_.unpin(node);
    }
    cache_.forget();
    EXPECT_EQ(cache_.use().bytes, 0U);
    EXPECT_EQ(cache_.use().shared_block_count, 0);
    cache_.check_invariants();
  }

  std::int64_t reused() const { return reused_; }
  std::int64_t pinned() const { return pinned_; }
  std::int64_t refused() const { return refused_; }
  std::int64_t loaded() const { return loaded_; }
  CacheUse use() const { return cache_.use(); }

 private:
  using Prefix = std::pair<std::string, Tokens>;  // salt, tokens
  using Pins = std::map<Prefix, NodeId>;

  std::int64_t below(std::int64_t n) {
    return static_cast<std::int64_t>(random_() % static_cast<std::uint64_t>(n));
  }

  // Without a tree: every block of every pinned prefix once, and their states.
  static std::size_t pinned_bytes(const Pins& pins) {
    std::set<Prefix> blocks;
    for (const auto& [prefix, node] : pins) {
      for (auto end = prefix.second.begin(); end != prefix.second.end();) {
        end += 64;
        blocks.insert({prefix.first, Tokens(prefix.second.begin(), end)});
      }
    }
    return blocks.size() * kBlockBytes + pins.size() * kSlotBytes;
  }

  void pin_or_unpin() {
    if (!pins_.empty() && below(3) == 0) {
      const auto gone = std::next(pins_.begin(), below(std::ssize(pins_)));
      cache_.unpin(gone->second);
      pins_.erase(gone);
      return;
    }
    if (kept_.empty()) {
      return;
    }
    Prefix prefix = *std::next(kept_.begin(), below(std::ssize(kept_)));
    if (below(4) == 0) {  // perhaps one without a state
      prefix.second.resize(static_cast<std::size_t>(64 * (1 + below(4))));
    }
    Pins more = pins_;
    more.try_emplace(prefix, 0);
    const bool over_budget = pinned_bytes(more) > shape_.reuse_bytes / 2;
    const auto pinned = cache_.pin(prefix.first, prefix.second);
    if (!pinned) {
      EXPECT_EQ(pinned.error().over_budget, over_budget);
      EXPECT_EQ(pinned.error().bytes_wanted, pinned_bytes(more) - pinned_bytes(pins_));
      EXPECT_TRUE(over_budget || !kept_.contains(prefix) || gave_up_something());
      ++refused_;
      return;
    }
    EXPECT_FALSE(over_budget);
    EXPECT_TRUE(kept_.contains(prefix));
    EXPECT_TRUE(pins_.try_emplace(prefix, *pinned).first->second == *pinned);
    ++pinned_;
  }

  // Whatever happened, a pinned prefix is there, whole and right.
  void check_pins() {
    ASSERT_EQ(cache_.pinned_bytes(), pinned_bytes(pins_));
    for (const auto& [prefix, node] : pins_) {
      const auto& [salt, tokens] = prefix;
      ASSERT_EQ(cache_.pin(salt, tokens), node);
      if (below(16) != 0 || std::ssize(runners_) == shape_.running_slot_count ||
          promised() + std::ssize(tokens) / 64 > shape_.running_block_count) {
        continue;
      }
      Runner probe{.salt = salt, .tokens = tokens, .computed = std::ssize(tokens), .cache = {}};
      cache_.open(probe.cache, salt);
      ASSERT_EQ(cache_.resume(probe.cache, tokens).tokens, std::ssize(tokens));
      const std::vector<NodeId> passed = cache_.pinned_on_path(probe.cache);
      EXPECT_EQ(passed.front(), node);
      const auto is_passed = [&](const auto& other) {
        const auto& [other_salt, begin] = other.first;
        return other_salt == salt && begin.size() <= tokens.size() &&
               std::equal(begin.begin(), begin.end(), tokens.begin());
      };
      EXPECT_EQ(std::ssize(passed), std::ranges::count_if(pins_, is_passed));
      check(probe);
      cache_.close(probe.cache);
    }
  }

  // Few different tokens in few patterns, so that prefixes meet again.
  Tokens make_tokens() {
    Tokens tokens;
    const std::int64_t length = 1 + below(420);
    if (!seen_.empty() && below(3) != 0) {
      tokens = seen_[static_cast<std::size_t>(below(std::ssize(seen_)))];
      tokens.resize(static_cast<std::size_t>(below(std::ssize(tokens)) + 1));
    }
    while (std::ssize(tokens) < length) {
      tokens.push_back(static_cast<std::int32_t>(below(2)));
    }
    seen_.push_back(tokens);
    return tokens;
  }

  std::int64_t promised() const {
    std::int64_t blocks = 0;
    for (const auto& runner : runners_) {
      blocks += runner->promised_blocks;
    }
    return blocks;
  }

  void start() {
    auto runner = std::make_unique<Runner>();
    runner->salt = below(2) == 0 ? "" : "tenant";
    runner->tokens = make_tokens();
    runner->promised_blocks = ceil_div(std::ssize(runner->tokens), kPrefixBlockTokens);
    if (std::ssize(runners_) == shape_.running_slot_count ||
        promised() + runner->promised_blocks > shape_.running_block_count) {
      return;
    }
    cache_.open(runner->cache, runner->salt);
    const std::span<const std::int32_t> tokens(runner->tokens);
    const auto limit = static_cast<std::size_t>(below(std::ssize(tokens) + 1));
    const PrefixReuse reuse = cache_.resume(runner->cache, tokens.first(limit));
    ASSERT_EQ(reuse.tokens % kPrefixBlockTokens, 0);
    ASSERT_LE(reuse.tokens, static_cast<std::int64_t>(limit));
    ASSERT_LE(reuse.tokens, reuse.kv_tokens);
    ASSERT_EQ(std::ssize(runner->cache.block_table) * kPrefixBlockTokens, reuse.tokens);
    if (!gave_up_something()) {
      ASSERT_EQ(reuse.tokens, longest_known(*runner, limit));
    }
    runner->computed = reuse.tokens;
    reused_ += reuse.tokens;
    check(*runner);
    runners_.push_back(std::move(runner));
  }

  // By brute force; as long as nothing was given up.
  std::int64_t longest_known(const Runner& runner, std::size_t limit) {
    std::int64_t longest = 0;
    for (std::size_t length = 64; length <= limit; length += 64) {
      const Tokens prefix(runner.tokens.begin(),
                          runner.tokens.begin() + static_cast<std::ptrdiff_t>(length));
      if (kept_.contains({runner.salt, prefix})) {
        longest = static_cast<std::int64_t>(length);
      }
    }
    return longest;
  }

  std::byte* block(BlockId id) {
    return cache_.blocks() + static_cast<std::size_t>(id) * kBlockBytes;
  }
  std::byte* slot(SlotId id) { return cache_.slots() + static_cast<std::size_t>(id) * kSlotBytes; }

  // Everything a sequence holds is what computing its tokens alone would have left.
  void check(const Runner& runner) {
    const std::span<const std::int32_t> tokens(runner.tokens);
    for (std::int64_t end = 64; end <= runner.computed; end += 64) {
      const BlockId id = runner.cache.block_table[static_cast<std::size_t>(end / 64 - 1)];
      ASSERT_TRUE(holds(block(id), kBlockBytes,
                        content_of(runner.salt, tokens.first(static_cast<std::size_t>(end)))));
    }
    const std::uint64_t state =
        runner.computed == 0
            ? 0
            : content_of(runner.salt, tokens.first(static_cast<std::size_t>(runner.computed)));
    ASSERT_TRUE(holds(slot(runner.cache.state_slot), kSlotBytes, state));
  }

  // One step of some of the sequences, in the order the engine does things.
  void compute() {
    struct Made {
      Runner* runner;
      std::int64_t tokens;
      SlotId slot;
    };
    std::vector<std::pair<Runner*, std::int64_t>> work;
    for (const auto& runner : runners_) {
      const std::int64_t left = std::ssize(runner->tokens) - runner->computed;
      if (left > 0 && below(2) == 0) {
        work.emplace_back(runner.get(), runner->computed + 1 + below(left));
        cache_.grow(runner->cache, work.back().second);
      }
    }
    std::vector<Made> made;
    for (const auto& [runner, end] : work) {
      for (std::int64_t at = (runner->computed / 64 + 1) * 64; at <= end; at += 64) {
        if (below(3) == 0) {
          if (const auto id = cache_.reserve_checkpoint(runner->cache, at, 1.0)) {
            made.push_back({runner, at, *id});
          }
        }
      }
    }
    for (const auto& [runner, end] : work) {
      const std::span<const std::int32_t> tokens(runner->tokens);
      for (std::int64_t at = (runner->computed / 64 + 1) * 64; at <= end; at += 64) {
        std::byte* item = block(runner->cache.block_table[static_cast<std::size_t>(at / 64 - 1)]);
        fill(item, kBlockBytes,
             content_of(runner->salt, tokens.first(static_cast<std::size_t>(at))));
      }
      fill(slot(runner->cache.state_slot), kSlotBytes,
           content_of(runner->salt, tokens.first(static_cast<std::size_t>(end))));
      runner->computed = end;
    }
    for (const Made& checkpoint : made) {
      const std::span<const std::int32_t> tokens(checkpoint.runner->tokens);
      fill(slot(checkpoint.slot), kSlotBytes,
           content_of(checkpoint.runner->salt,
                      tokens.first(static_cast<std::size_t>(checkpoint.tokens))));
    }
    for (const auto& [runner, end] : work) {
      cache_.share(runner->cache, runner->tokens, end);
    }
    for (const Made& checkpoint : made) {
      cache_.keep_checkpoint(checkpoint.runner->cache, checkpoint.tokens, checkpoint.slot, 1.0);
      kept_.insert(
          {checkpoint.runner->salt, Tokens(checkpoint.runner->tokens.begin(),
                                           checkpoint.runner->tokens.begin() +
                                               static_cast<std::ptrdiff_t>(checkpoint.tokens))});
    }
    for (const auto& runner : runners_) {
      check(*runner);
    }
  }

  void forget() {
    const CacheUse before = cache_.use();
    const std::string salt = below(2) == 0 ? "" : "tenant";
    const bool all = below(3) == 0;
    const CacheFreed freed = all ? cache_.forget() : cache_.forget(salt);
    std::erase_if(kept_, [&](const auto& entry) {
      return (all || entry.first == salt) && !pins_.contains(entry);
    });
    EXPECT_EQ(before.bytes - cache_.use().bytes, freed.bytes);
    EXPECT_EQ(before.shared_block_count - cache_.use().shared_block_count, freed.block_count);
    EXPECT_EQ(freed.bytes, static_cast<std::size_t>(freed.block_count) * kBlockBytes +
                               static_cast<std::size_t>(freed.checkpoint_count) * kSlotBytes);
    EXPECT_EQ(before.evicted_block_count, cache_.use().evicted_block_count);
  }

  // Something that was kept, or was in a file, is not there.
  bool gave_up_something() const {
    const CacheUse use = cache_.use();
    return use.evicted_block_count + use.evicted_checkpoint_count > 0 || loaded_without_room_;
  }

  // What a file has is right whatever became of the cache since; loading takes nothing away.
  void save_or_load() {
    const CacheIdentity identity{{"program", "this one"}};
    TestNames names;
    const CacheUse before = cache_.use();
    if (!saved_ || below(3) == 0) {
      const auto saved = cache_.save(file_, identity, {}, names);
      ASSERT_TRUE(saved) << saved.error().message;
      EXPECT_EQ(saved->checkpoint_count, before.checkpoint_count);
      EXPECT_LE(saved->block_count, before.shared_block_count);
      saved_ = kept_;
      return;
    }
    std::vector<LoadedPin> pins;
    const auto loaded = cache_.load(file_, identity, pins, names);
    ASSERT_TRUE(loaded) << loaded.error().message;
    const CacheUse after = cache_.use();
    EXPECT_EQ(after.checkpoint_count, before.checkpoint_count + loaded->checkpoint_count);
    EXPECT_EQ(after.evicted_checkpoint_count, before.evicted_checkpoint_count);
    kept_.insert(saved_->begin(), saved_->end());
    loaded_ += loaded->block_count * kPrefixBlockTokens;
    loaded_without_room_ = shape_.reuse_bytes < 1000 * kSlotBytes;  // perhaps
  }

  void stop(std::int64_t index) {
    check(*runners_[static_cast<std::size_t>(index)]);
    cache_.close(runners_[static_cast<std::size_t>(index)]->cache);
    runners_.erase(runners_.begin() + index);
  }

  std::mt19937_64 random_;
  std::filesystem::path file_;
  HybridCacheShape shape_;
  HybridCache cache_;
  std::vector<std::unique_ptr<Runner>> runners_;
  std::vector<Tokens> seen_;
  std::set<Prefix> kept_;
  Pins pins_;
  std::int64_t reused_ = 0;
  std::int64_t pinned_ = 0;
  std::int64_t refused_ = 0;
  std::int64_t loaded_ = 0;
  std::optional<std::set<Prefix>> saved_;  // what was kept when the file was written
  bool loaded_without_room_ = false;
};

class HybridCachePrograms : public CacheFolderTest {};

TEST_F(HybridCachePrograms, NeverMixPrefixesUp) {
  std::int64_t reused = 0;
  std::int64_t loaded = 0;
  std::int64_t evicted_checkpoints = 0;
  std::int64_t evicted_blocks = 0;
  std::int64_t pinned = 0;
  std::int64_t refused = 0;
  for (std::uint64_t seed = 1; seed <= 30; ++seed) {
    const std::size_t items = seed % 3 == 0 ? 2 : seed % 3 == 1 ? 12 : 60;
    Program program(seed, items * kSlotBytes + seed, path_);
    program.run(400);
    ASSERT_FALSE(HasFatalFailure()) << "seed " << seed;
    reused += program.reused();
    loaded += program.loaded();
    pinned += program.pinned();
    refused += program.refused();
    evicted_checkpoints += program.use().evicted_checkpoint_count;
    evicted_blocks += program.use().evicted_block_count;
  }
  EXPECT_GT(reused, 5000);  // the test must not pass because nothing is ever found
  EXPECT_GT(loaded, 5000);
  EXPECT_GT(pinned, 200);
  EXPECT_GT(refused, 200);
  EXPECT_GT(evicted_checkpoints, 100);
  EXPECT_GT(evicted_blocks, 100);
}

TEST_F(HybridCachePrograms, WithRoomForEverythingFindTheLongestPrefix) {
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    Program program(seed, 4000 * kSlotBytes, path_);
    program.run(400);
    ASSERT_FALSE(HasFatalFailure()) << "seed " << seed;
  }
}

TEST_F(HybridCachePrograms, WithoutABudgetKeepNothing) {
  Program program(1, 0, path_);
  program.run(400);
  EXPECT_EQ(program.reused(), 0);
  EXPECT_EQ(program.use().evicted_block_count, 0);
}

}  // namespace
}  // namespace sluice
