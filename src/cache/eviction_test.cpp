// What is given up first, what is not given up, and how much there may be of everything.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "cache/test_cache.h"

namespace sluice {
namespace {

std::int64_t known(HybridCache& cache, const Tokens& tokens, const std::string& salt = "") {
  SequenceCache sequence;
  cache.open(sequence, salt);
  const std::int64_t tokens_known = cache.known_tokens(sequence, tokens);
  cache.close(sequence);
  cache.check_invariants();
  return tokens_known;
}

TEST(Eviction, SaltsNeverMeet) {
  HybridCache cache = HybridCache::create(kSmall).value();
  store(cache, Tokens(128, 1), {64, 128});
  EXPECT_EQ(known(cache, Tokens(128, 1)), 128);
  EXPECT_EQ(known(cache, Tokens(128, 1), "other"), 0);
  EXPECT_EQ(known(cache, Tokens(127, 1)), 64);
  EXPECT_EQ(known(cache, Tokens(63, 1)), 0);
}

TEST(Eviction, BlocksWithoutAStateGoFirst) {
  HybridCache cache = HybridCache::create(kSmall).value();
  store(cache, Tokens(10 * 64, 1), {5 * 64});  // five blocks lead nowhere
  store(cache, Tokens(20 * 64, 2), {20 * 64});
  EXPECT_EQ(cache.use().evicted_block_count, 0);
  while (cache.use().evicted_block_count < 5) {
    Tokens other(20 * 64, static_cast<std::int32_t>(3 + cache.use().shared_block_count));
    store(cache, other, {});
  }
  EXPECT_EQ(known(cache, Tokens(10 * 64, 1)), 5 * 64);
  EXPECT_EQ(known(cache, Tokens(20 * 64, 2)), 20 * 64);
}

TEST(Eviction, MarksThinOutEvenly) {
  HybridCacheShape shape = kSmall;
  shape.running_block_count = 64;
  shape.running_slot_count = 1;
  shape.block_bytes = 1;  // states alone fill the budget
  shape.reuse_bytes = 64 * 8;
  HybridCache cache = HybridCache::create(shape).value();
  Tokens tokens(64 * 64);
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    tokens[i] = static_cast<std::int32_t>(i);
  }
  std::vector<std::int64_t> marks;
  for (std::int64_t at = 64; at <= std::ssize(tokens); at += 64) {
    marks.push_back(at);
  }
  // One by one, as a prefill does.
  SequenceCache sequence;
  cache.open(sequence, "");
  cache.resume(sequence, {});
  for (const std::int64_t at : marks) {
    cache.grow(sequence, at);
    const auto slot = cache.reserve_checkpoint(sequence, at, 1.0);
    cache.share(sequence, tokens, at);
    if (slot) {
      cache.keep_checkpoint(sequence, at, *slot, 1.0);
    }
  }
  cache.close(sequence);
  std::int64_t largest_gap = 0;
  std::int64_t last = 0;
  for (const std::int64_t at : marks) {
    const Tokens prefix(tokens.begin(), tokens.begin() + at);
    if (known(cache, prefix) == at) {
      largest_gap = std::max(largest_gap, at - last);
      last = at;
    }
  }
  EXPECT_LE(largest_gap, 64 * 20);  // 64 blocks over some eight states
  EXPECT_GE(last, 64 * 40);
}

TEST(Eviction, ALikelyStateOutlivesMarks) {
  HybridCacheShape shape = kSmall;
  shape.block_bytes = 1;
  shape.reuse_bytes = 64 * 3;
  HybridCache cache = HybridCache::create(shape).value();
  store(cache, Tokens(4 * 64, 1), {4 * 64}, "", 4.0);
  for (std::int32_t i = 2; i < 4; ++i) {
    store(cache, Tokens(4 * 64, i), {64, 2 * 64, 3 * 64, 4 * 64});
  }
  EXPECT_EQ(known(cache, Tokens(4 * 64, 1)), 4 * 64);
  EXPECT_GT(cache.use().evicted_checkpoint_count, 0);
}

// States that were resumed from very often, long ago, must not keep new ones out.
TEST(Eviction, WhatWasPopularYesterdayGoes) {
  HybridCacheShape shape = kSmall;
  shape.block_bytes = 1;
  shape.reuse_bytes = 64 * 4;
  HybridCache cache = HybridCache::create(shape).value();
  for (std::int32_t i = 0; i < 4; ++i) {
    store(cache, Tokens(18 * 64, i), {18 * 64}, "", 4.0);
    for (int uses = 0; uses < 200; ++uses) {
      SequenceCache sequence;
      cache.open(sequence, "");
      cache.resume(sequence, Tokens(18 * 64, i));
      cache.close(sequence);
    }
  }
  int found = 0;
  for (std::int32_t i = 100; i < 400; ++i) {
    store(cache, Tokens(4 * 64, i), {4 * 64}, "", 4.0);
    found += known(cache, Tokens(4 * 64, i)) > 0 ? 1 : 0;
  }
  EXPECT_GE(found, 240);
}

TEST(Eviction, AStateThatTwoSequencesMadeIsDroppedByNeither) {
  HybridCacheShape shape = kSmall;
  shape.running_slot_count = 3;
  HybridCache cache = HybridCache::create(shape).value();
  const Tokens tokens(192, 1);
  SequenceCache one;
  SequenceCache two;
  SlotId made = 0;
  for (SequenceCache* sequence : {&one, &two}) {
    cache.open(*sequence, "");
    cache.resume(*sequence, {});
    cache.grow(*sequence, 192);
    const auto slot = cache.reserve_checkpoint(*sequence, 128, 2.0);
    ASSERT_TRUE(slot);
    cache.share(*sequence, tokens, 192);
    made = cache.keep_checkpoint(*sequence, 128, *slot, 2.0);
    EXPECT_EQ(made == *slot, sequence == &one);
  }
  cache.drop_unused_checkpoint(one, 128, one.state_slot);  // not the slot it is in
  EXPECT_EQ(known(cache, tokens), 128);
  cache.drop_unused_checkpoint(one, 128, made);  // the other one made it too
  EXPECT_EQ(known(cache, tokens), 128);
  cache.close(one);
  cache.close(two);
  EXPECT_EQ(cache.use().checkpoint_count, 1);
}

// Many more states than are looked at for one eviction: nothing is found wrong, and it stays cheap.
TEST(Eviction, ThousandsOfStates) {
  HybridCacheShape shape = kSmall;
  shape.block_bytes = 1;
  shape.reuse_bytes = 64 * 3000;
  HybridCache cache = HybridCache::create(shape).value();
  for (std::int32_t i = 0; i < 5000; ++i) {
    store(cache, Tokens(64, i), {64});
  }
  EXPECT_GE(cache.use().checkpoint_count, 2900);
  EXPECT_EQ(known(cache, Tokens(64, 4999)), 64);
  cache.forget();
  EXPECT_EQ(cache.use().bytes, 0U);
}

TEST(Eviction, ThousandsOfSalts) {
  HybridCache cache = HybridCache::create(kSmall).value();
  for (int i = 0; i < 20000; ++i) {
    SequenceCache sequence;
    cache.open(sequence, std::to_string(i));
    cache.resume(sequence, {});
    cache.grow(sequence, 64);
    cache.share(sequence, Tokens(64, 1), 64);
    cache.close(sequence);
  }
  cache.check_invariants();
}

}  // namespace
}  // namespace sluice
