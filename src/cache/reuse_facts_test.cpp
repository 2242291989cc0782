// What resume() says about why it found no more, and forgetting by salt.
#include <gtest/gtest.h>

#include <string>

#include "cache/test_cache.h"

namespace sluice {
namespace {

Tokens numbers(std::int32_t count, std::int32_t first = 0) {
  Tokens tokens;
  for (std::int32_t i = 0; i < count; ++i) {
    tokens.push_back(first + i);
  }
  return tokens;
}

Tokens join(Tokens head, const Tokens& tail) {
  head.insert(head.end(), tail.begin(), tail.end());
  return head;
}

void store_all(HybridCache& cache, const Tokens& tokens, const std::vector<std::int64_t>& states,
               const std::string& salt = "") {
  ASSERT_EQ(store(cache, tokens, states, salt), states.size());
}

TEST(ReuseFacts, NothingIsStored) {
  HybridCache cache = HybridCache::create(kSmall).value();
  const PrefixReuse reuse = look_up(cache, numbers(200));
  EXPECT_EQ(reuse.tokens, 0);
  EXPECT_FALSE(reuse.salt_known);
  EXPECT_EQ(reuse.diverged_at, std::nullopt);
  store_all(cache, numbers(128), {128}, "other");
  EXPECT_FALSE(look_up(cache, numbers(200)).salt_known);
  EXPECT_TRUE(look_up(cache, numbers(200), "other").salt_known);
}

TEST(ReuseFacts, ThePromptGoesOnWhereTheStoredOneEnds) {
  HybridCache cache = HybridCache::create(kSmall).value();
  store_all(cache, numbers(128), {128});
  const PrefixReuse reuse = look_up(cache, numbers(500));
  EXPECT_EQ(reuse.tokens, 128);
  EXPECT_EQ(reuse.kv_tokens, 128);
  EXPECT_EQ(reuse.diverged_at, std::nullopt);
}

TEST(ReuseFacts, TheFirstDifferentTokenIsNamedInsideItsBlock) {
  HybridCache cache = HybridCache::create(kSmall).value();
  store_all(cache, numbers(256), {128, 256});
  for (const std::int32_t shared : {0, 1, 63, 64, 100, 127, 128, 129, 191}) {
    const PrefixReuse reuse = look_up(cache, join(numbers(shared), Tokens(200, 9999)));
    EXPECT_EQ(reuse.kv_tokens, shared / 64 * 64);
    EXPECT_EQ(reuse.diverged_at, shared) << shared;
  }
}

TEST(ReuseFacts, TheLongestOfSeveralBranchesCounts) {
  HybridCache cache = HybridCache::create(kSmall).value();
  for (const std::int32_t shared : {70, 90, 80}) {
    store_all(cache, join(numbers(shared), numbers(128 - shared, 5000 + shared)), {128});
  }
  EXPECT_EQ(look_up(cache, numbers(200)).diverged_at, 90);
}

TEST(ReuseFacts, AShortTailIsNoDivergence) {
  HybridCache cache = HybridCache::create(kSmall).value();
  store_all(cache, numbers(192), {128});
  EXPECT_EQ(look_up(cache, join(numbers(128), Tokens(63, 9999))).diverged_at, std::nullopt);
}

TEST(ReuseFacts, KeysAndValuesWithoutAState) {
  HybridCache cache = HybridCache::create(kSmall).value();
  store_all(cache, numbers(256), {64});
  const PrefixReuse reuse = look_up(cache, numbers(256));
  EXPECT_EQ(reuse.tokens, 64);
  EXPECT_EQ(reuse.kv_tokens, 256);
  EXPECT_FALSE(reuse.state_evicted);
}

TEST(ReuseFacts, AStateThatWasGivenUpIsRemembered) {
  HybridCacheShape shape = kSmall;
  shape.block_bytes = 1;  // states alone fill the budget
  shape.running_slot_count = 1;
  shape.reuse_bytes = 64 * 3;
  HybridCache cache = HybridCache::create(shape).value();
  store_all(cache, numbers(192), {64, 128, 192});
  SequenceCache sequence;  // holds the blocks while the states go
  cache.open(sequence, "");
  cache.resume(sequence, numbers(192));
  for (std::int64_t at = 64; at <= 4 * 64; at += 64) {
    const auto slot = cache.reserve_checkpoint(sequence, 192 + at, 1e6);
    ASSERT_TRUE(slot);
    sequence.last_checkpoint = 192;
    cache.grow(sequence, 192 + at);
    cache.share(sequence, numbers(448), 192 + at);
    cache.keep_checkpoint(sequence, 192 + at, *slot, 1e6);
    if (cache.use().evicted_checkpoint_count == 3) {
      break;
    }
  }
  cache.close(sequence);
  EXPECT_GT(cache.use().evicted_checkpoint_count, 0);
  const PrefixReuse reuse = look_up(cache, numbers(192));
  EXPECT_LT(reuse.tokens, reuse.kv_tokens);
  EXPECT_TRUE(reuse.state_evicted);
}

TEST(Forget, ASaltAloneLosesWhatItStored) {
  HybridCache cache = HybridCache::create(kSmall).value();
  store_all(cache, numbers(192), {64, 192}, "a");
  store_all(cache, join(numbers(64), Tokens(64, 9)), {128}, "a");
  store_all(cache, numbers(128), {128}, "b");
  const CacheFreed freed = cache.forget("a");
  cache.check_invariants();
  EXPECT_EQ(freed.block_count, 4);
  EXPECT_EQ(freed.checkpoint_count, 3);
  EXPECT_EQ(freed.bytes, 7 * 64U);
  EXPECT_EQ(look_up(cache, numbers(192), "a").kv_tokens, 0);
  EXPECT_EQ(look_up(cache, numbers(128), "b").tokens, 128);
  EXPECT_EQ(cache.forget("never seen").bytes, 0U);
  EXPECT_EQ(cache.use().evicted_checkpoint_count, 0);
}

TEST(Forget, WhatARunningSequenceHoldsStays) {
  HybridCache cache = HybridCache::create(kSmall).value();
  store_all(cache, numbers(256), {128, 256});
  SequenceCache running;
  cache.open(running, "");
  ASSERT_EQ(cache.resume(running, numbers(140)).tokens, 128);
  const CacheFreed freed = cache.forget();
  cache.check_invariants();
  EXPECT_EQ(freed.block_count, 2);  // of four: the running sequence uses the other two
  EXPECT_EQ(freed.checkpoint_count, 2);
  cache.grow(running, 140);
  cache.share(running, numbers(140), 140);
  cache.close(running);
  EXPECT_EQ(cache.forget().block_count, 2);
  EXPECT_EQ(cache.use().bytes, 0U);
}

}  // namespace
}  // namespace sluice
