// Pinned prefixes: what they survive, what they may take, and that they end.
#include <gtest/gtest.h>

#include <string>

#include "cache/test_cache.h"

namespace sluice {
namespace {

std::int64_t known(HybridCache& cache, const Tokens& tokens, const std::string& salt = "") {
  return look_up(cache, tokens, salt).tokens;
}

// Other prefixes until everything that may go is gone.
void press(HybridCache& cache) {
  for (std::int32_t i = 1000; i < 1100; ++i) {
    store(cache, Tokens(19 * 64, i), {5 * 64, 10 * 64, 19 * 64});
  }
}

TEST(Pins, OutliveEverythingElseAndGoWhenTheyEnd) {
  HybridCache cache = HybridCache::create(kSmall).value();
  store(cache, Tokens(256, 1), {128, 256});
  store(cache, Tokens(256, 2), {128, 256});
  const auto pinned = cache.pin("", Tokens(256, 1));
  ASSERT_TRUE(pinned);
  EXPECT_EQ(cache.pinned_bytes(), 5 * 64U);
  EXPECT_EQ(cache.pin_bytes(*pinned), 5 * 64U);
  press(cache);
  EXPECT_EQ(known(cache, Tokens(256, 2)), 0);
  EXPECT_EQ(known(cache, Tokens(256, 1)), 256);
  EXPECT_EQ(known(cache, Tokens(255, 1)), 0);  // the state before was not pinned
  cache.unpin(*pinned);
  EXPECT_EQ(cache.pinned_bytes(), 0U);
  press(cache);
  EXPECT_EQ(known(cache, Tokens(256, 1)), 0);
}

TEST(Pins, NeedAStateAfterTheirLastToken) {
  HybridCache cache = HybridCache::create(kSmall).value();
  store(cache, Tokens(256, 1), {128});
  for (const std::int64_t length : {64, 192, 256, 320}) {
    const auto pinned = cache.pin("", Tokens(static_cast<std::size_t>(length), 1));
    ASSERT_FALSE(pinned) << length;
    EXPECT_FALSE(pinned.error().over_budget);
  }
  EXPECT_FALSE(cache.pin("other", Tokens(128, 1)));
  EXPECT_TRUE(cache.pin("", Tokens(128, 1)));
  EXPECT_EQ(cache.pinned_bytes(), 3 * 64U);
}

TEST(Pins, SharedBlocksCountOnce) {
  HybridCache cache = HybridCache::create(kSmall).value();
  store(cache, Tokens(512, 1), {128, 512});
  ASSERT_TRUE(cache.pin("", Tokens(512, 1)));
  EXPECT_EQ(cache.pinned_bytes(), 9 * 64U);
  const auto inner = cache.pin("", Tokens(128, 1));
  ASSERT_TRUE(inner);
  EXPECT_EQ(cache.pin("", Tokens(128, 1)), *inner);  // once more: nothing happens
  EXPECT_EQ(cache.pinned_bytes(), 10 * 64U);
  EXPECT_EQ(cache.pin_bytes(*inner), 3 * 64U);
  cache.unpin(*inner);
  EXPECT_EQ(cache.pinned_bytes(), 9 * 64U);
  cache.check_invariants();
}

TEST(Pins, TakeHalfAtMost) {
  HybridCache cache = HybridCache::create(kSmall).value();
  EXPECT_EQ(cache.pinned_bytes_max(), 20 * 64U);
  for (std::int32_t i = 0; i < 4; ++i) {
    store(cache, Tokens(256, i), {256});
    ASSERT_TRUE(cache.pin("", Tokens(256, i)));
  }
  EXPECT_EQ(cache.pinned_bytes(), 20 * 64U);
  store(cache, Tokens(64, 9), {64});
  const auto refused = cache.pin("", Tokens(64, 9));
  ASSERT_FALSE(refused);
  EXPECT_TRUE(refused.error().over_budget);
  EXPECT_EQ(refused.error().bytes_wanted, 2 * 64U);
  // Said before it is computed, too.
  EXPECT_TRUE(cache.pin("", Tokens(6400, 8)).error().over_budget);
  press(cache);
  for (std::int32_t i = 0; i < 4; ++i) {
    EXPECT_EQ(known(cache, Tokens(256, i)), 256);
  }
}

// Items without content are limited by their number.
TEST(Pins, LeaveRunningSequencesTheirBlocks) {
  for (const bool blocks : {false, true}) {
    HybridCacheShape shape = kSmall;
    (blocks ? shape.block_bytes : shape.slot_bytes) = 0;
    HybridCache cache = HybridCache::create(shape).value();
    std::int32_t pinned = 0;
    for (std::int32_t i = 0; i < 50; ++i) {
      store(cache, Tokens(320, i), {320});
      pinned += cache.pin("", Tokens(320, i)) ? 1 : 0;
    }
    EXPECT_GT(pinned, 0);
    SequenceCache running[2];
    for (SequenceCache& sequence : running) {
      cache.open(sequence, "");
      cache.resume(sequence, {});
      cache.grow(sequence, 640);
    }
    cache.check_invariants();
    for (SequenceCache& sequence : running) {
      cache.close(sequence);
    }
  }
}

TEST(Pins, AreNotForgotten) {
  HybridCache cache = HybridCache::create(kSmall).value();
  store(cache, Tokens(256, 1), {64, 256}, "a");
  store(cache, Tokens(256, 2), {256}, "a");
  const auto pinned = cache.pin("a", Tokens(256, 1));
  ASSERT_TRUE(pinned);
  EXPECT_EQ(cache.forget("a").bytes, 6 * 64U);
  EXPECT_EQ(cache.forget().bytes, 0U);
  EXPECT_EQ(known(cache, Tokens(256, 1), "a"), 256);
  cache.unpin(*pinned);
  EXPECT_EQ(cache.forget("a").bytes, 5 * 64U);
  EXPECT_EQ(cache.use().bytes, 0U);
}

TEST(Pins, TheStateOfAnAnswerStaysOncePinned) {
  HybridCache cache = HybridCache::create(kSmall).value();
  SequenceCache sequence;
  cache.open(sequence, "");
  cache.resume(sequence, {});
  cache.grow(sequence, 128);
  const auto slot = cache.reserve_checkpoint(sequence, 128, 2.0);
  cache.share(sequence, Tokens(128, 1), 128);
  const SlotId made = cache.keep_checkpoint(sequence, 128, slot.value(), 2.0);
  ASSERT_TRUE(cache.pin("", Tokens(128, 1)));
  cache.drop_unused_checkpoint(sequence, 128, made);
  cache.close(sequence);
  EXPECT_EQ(known(cache, Tokens(128, 1)), 128);
}

TEST(Pins, NothingIsPinnedWhereNothingIsKept) {
  HybridCacheShape shape = kSmall;
  shape.reuse_bytes = 0;
  HybridCache cache = HybridCache::create(shape).value();
  EXPECT_TRUE(cache.pin("", Tokens(64, 1)).error().over_budget);
}

}  // namespace
}  // namespace sluice
