// Saving and loading: what comes back, into which room, and what never does.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

#include "cache/test_cache.h"
#include "cache/test_files.h"

namespace sluice {
namespace {

using ::testing::HasSubstr;

const CacheIdentity kIdentity{{"weights", "w1"}, {"numerics", "1"}};

HybridCacheShape shape_with(std::size_t reuse_items) {
  HybridCacheShape shape = kSmall;
  shape.reuse_bytes = reuse_items * shape.block_bytes;
  return shape;
}

Tokens tokens(std::int64_t count, std::int32_t first = 1) {
  Tokens made(static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < made.size(); ++i) {
    made[i] = static_cast<std::int32_t>(i);
  }
  made.front() = first;
  return made;
}

class HybridCacheFile : public CacheFolderTest {
 protected:
  static HybridCache make(std::size_t reuse_items = 40) {
    return HybridCache::create(shape_with(reuse_items)).value();
  }
  CacheMoved save(const HybridCache& cache, std::span<const CacheFilePin> pins = {}) {
    const auto saved = cache.save(path_, kIdentity, pins, names_);
    EXPECT_TRUE(saved) << saved.error().message;
    return saved.value_or(CacheMoved{});
  }
  CacheMoved load(HybridCache& cache) {
    pins_.clear();
    const auto loaded = cache.load(path_, kIdentity, pins_, names_);
    EXPECT_TRUE(loaded) << loaded.error().message;
    cache.check_invariants();
    return loaded.value_or(CacheMoved{});
  }

  std::vector<LoadedPin> pins_;
  TestNames names_;
};

TEST_F(HybridCacheFile, NamesComeBackAsWhatTheyStandFor) {
  HybridCache cache = make();
  Tokens named = tokens(256);
  named[70] = -1;   // a
  named[200] = -3;  // c
  store(cache, named, {128, 256}, "one");
  save(cache);
  HybridCache other = make();
  TestNames names(-50);
  ASSERT_TRUE(other.load(path_, kIdentity, pins_, names));
  EXPECT_EQ(look_up(other, named, "one").kv_tokens, 64);  // the names of the other life
  named[70] = -50;
  named[200] = -52;
  EXPECT_EQ(look_up(other, named, "one").tokens, 256);
}

TEST_F(HybridCacheFile, WhatHasForgottenNamesIsLeftOut) {
  HybridCache cache = make();
  Tokens named = tokens(256);
  named[70] = -1;   // a
  named[200] = -3;  // c
  store(cache, named, {64, 128, 256}, "one");
  const NodeId pinned = cache.pin("one", named).value();
  const CacheFilePin pin{.node = pinned, .id = "i"};
  const TestNames forgetful(-1, 'c');
  const auto saved = cache.save(path_, kIdentity, std::span(&pin, 1), forgetful);
  ASSERT_TRUE(saved);
  EXPECT_EQ(saved->checkpoint_count, 2);
  HybridCache other = make();
  load(other);
  EXPECT_TRUE(pins_.empty());
  EXPECT_EQ(look_up(other, named, "one").tokens, 128);
  cache.unpin(pinned);
}

TEST_F(HybridCacheFile, ComesBackUnderItsSaltsAlone) {
  HybridCache cache = make();
  store(cache, tokens(640), {128, 320, 640}, "one");
  store(cache, tokens(320, 2), {320}, "two");
  const CacheMoved saved = save(cache);
  EXPECT_EQ(saved.block_count, 15);
  EXPECT_EQ(saved.checkpoint_count, 4);
  EXPECT_EQ(saved.bytes, 19U * 64);

  HybridCache other = make();
  const CacheMoved loaded = load(other);
  EXPECT_EQ(loaded.block_count, 15);
  EXPECT_EQ(loaded.checkpoint_count, 4);
  EXPECT_EQ(loaded.bytes, saved.bytes);
  EXPECT_EQ(other.use().shared_bytes, saved.bytes);
  EXPECT_EQ(look_up(other, tokens(640), "one").tokens, 640);
  EXPECT_EQ(look_up(other, tokens(400), "one").tokens, 320);
  EXPECT_EQ(look_up(other, tokens(320, 2), "two").tokens, 320);
  EXPECT_FALSE(look_up(other, tokens(640), "").salt_known);
  EXPECT_EQ(look_up(other, tokens(640), "two").kv_tokens, 0);
  EXPECT_EQ(look_up(other, tokens(320, 2), "one").kv_tokens, 0);
  EXPECT_EQ(load(other).bytes, 0U);  // all of it is there
}

TEST_F(HybridCacheFile, KeysAndValuesBehindTheLastStateAreLeftOut) {
  HybridCache cache = make();
  store(cache, tokens(640), {320});
  store(cache, tokens(128, 2), {});
  EXPECT_EQ(save(cache).block_count, 5);
}

TEST_F(HybridCacheFile, WithoutRoomTheMostValuableComeBack) {
  HybridCache cache = make();
  store(cache, tokens(256, 1), {256}, "", 1.0);
  store(cache, tokens(256, 2), {256}, "", 50.0);
  store(cache, tokens(256, 3), {256}, "", 10.0);
  store(cache, tokens(64, 4), {64}, "", 0.1);
  save(cache);
  // What is promised to running sequences (22 items) may be used until they want it.
  for (const std::size_t items : {1UL, 5UL, 8UL, 12UL, 17UL, 40UL}) {
    HybridCache other = make(items);
    SequenceCache sequence;  // takes all that it was promised
    SequenceCache second;
    other.open(sequence, "");
    other.open(second, "");
    other.resume(sequence, {});
    other.grow(sequence, 20 * 64);
    const CacheMoved loaded = load(other);
    const auto room = static_cast<std::int64_t>(items);
    EXPECT_LE(loaded.block_count + loaded.checkpoint_count, room);
    EXPECT_EQ(loaded.bytes,
              static_cast<std::size_t>(loaded.block_count * 64 + loaded.checkpoint_count * 64));
    EXPECT_LE(other.use().bytes, other.use().bytes_max);
    EXPECT_EQ(other.known_tokens(second, tokens(256, 2)), room >= 5 ? 256 : 0) << items;
    EXPECT_EQ(other.known_tokens(second, tokens(256, 3)), room >= 10 ? 256 : 0) << items;
    EXPECT_EQ(other.known_tokens(second, tokens(256, 1)), room >= 15 ? 256 : 0) << items;
    EXPECT_EQ(other.known_tokens(second, tokens(64, 4)), room == 1 || room == 5 ? 0 : 64) << items;
    other.close(sequence);
    other.close(second);
    other.check_invariants();
  }
}

TEST_F(HybridCacheFile, WhatIsStoredStays) {
  HybridCache cache = make();
  store(cache, tokens(640), {320, 640});
  store(cache, tokens(640, 2), {640});
  save(cache);
  HybridCache other = make(12);
  store(other, tokens(320), {192});
  const CacheUse before = other.use();
  const CacheMoved loaded = load(other);
  EXPECT_EQ(other.use().checkpoint_count, before.checkpoint_count + loaded.checkpoint_count);
  EXPECT_EQ(look_up(other, tokens(200)).tokens, 192);
  EXPECT_EQ(look_up(other, tokens(640)).tokens, 640);
}

TEST_F(HybridCacheFile, TheMostUsedOneIsStillWorthMost) {
  HybridCache cache = make();
  for (const std::int32_t first : {1, 2, 3}) {
    store(cache, tokens(128, first), {128});
  }
  for (int i = 0; i < 4; ++i) {
    look_up(cache, tokens(128, 2));
  }
  save(cache);
  HybridCache other = make();
  load(other);
  save(other);
  HybridCache third = make(3);
  SequenceCache sequence;
  SequenceCache second;
  third.open(sequence, "");
  third.open(second, "");
  third.resume(sequence, {});
  third.grow(sequence, 20 * 64);
  EXPECT_EQ(load(third).checkpoint_count, 1);
  EXPECT_EQ(third.known_tokens(second, tokens(128, 2)), 128);
  third.close(sequence);
  third.close(second);
}

// A flipped byte is only found in what is read: blocks of 64 bytes and their checksum.
TEST_F(HybridCacheFile, WhatIsNotTakenIsNotRead) {
  HybridCache cache = make();
  store(cache, tokens(128, 1), {128});
  store(cache, tokens(640, 2), {640});
  save(cache);
  const std::string whole = read();
  std::size_t refused = 0;
  for (std::size_t at = whole.size() - 14 * 68; at < whole.size(); at += 68) {
    write_byte(at, static_cast<char>(whole[at] ^ 1));
    HybridCache other = make(4);  // room for the small one
    SequenceCache sequence;
    other.open(sequence, "");
    other.resume(sequence, {});
    other.grow(sequence, 20 * 64);
    const auto loaded = other.load(path_, kIdentity, pins_, names_);
    refused += loaded ? 0 : 1;
    EXPECT_EQ(loaded ? loaded->block_count : 2, 2);
    other.close(sequence);
    other.check_invariants();
    write_byte(at, whole[at]);
  }
  EXPECT_EQ(refused, 3U);  // two blocks and a state
}

TEST_F(HybridCacheFile, OfADamagedOneNothingIsKept) {
  HybridCache cache = make();
  store(cache, tokens(320), {128, 320}, "one");
  store(cache, tokens(128, 2), {128}, "two");
  save(cache);
  const std::string whole = read();
  HybridCache other = make();
  store(other, tokens(128, 3), {64}, "one");
  const CacheUse before = other.use();
  for (std::size_t at = 0; at < whole.size(); at += at + 800 < whole.size() ? 7 : 1) {
    write_byte(at, static_cast<char>(whole[at] ^ 0x10));
    const auto loaded = other.load(path_, kIdentity, pins_, names_);
    ASSERT_FALSE(loaded) << at;
    other.check_invariants();
    ASSERT_EQ(other.use().shared_block_count, before.shared_block_count);
    ASSERT_EQ(other.use().checkpoint_count, before.checkpoint_count);
    ASSERT_EQ(other.use().bytes, before.bytes);
    write_byte(at, whole[at]);
  }
  EXPECT_EQ(look_up(other, tokens(128, 3), "one").tokens, 64);
  EXPECT_EQ(look_up(other, tokens(128), "one").kv_tokens, 0);
  EXPECT_FALSE(look_up(other, tokens(128, 2), "two").salt_known);
}

TEST_F(HybridCacheFile, AnotherModelsFileIsRefusedWithTheDifference) {
  HybridCache cache = make();
  store(cache, tokens(128), {128});
  save(cache);
  const auto refused = [this](HybridCache& other, const CacheIdentity& identity) {
    const auto loaded = other.load(path_, identity, pins_, names_);
    EXPECT_FALSE(loaded);
    EXPECT_EQ(loaded.error().code, ErrorCode::unsupported);
    EXPECT_EQ(other.use().shared_block_count, 0);
    return loaded.error().message;
  };
  HybridCache other = make();
  EXPECT_THAT(refused(other, {{"weights", "w2"}, {"numerics", "1"}}),
              HasSubstr("weights: saved with w1, here w2"));
  HybridCacheShape shape = kSmall;
  shape.slot_bytes = 72;
  HybridCache larger = HybridCache::create(shape).value();
  EXPECT_THAT(refused(larger, kIdentity), HasSubstr("bytes of a state: saved with 64, here 72"));
}

TEST_F(HybridCacheFile, PinsComeBackWithWhatTheyPin) {
  HybridCache cache = make();
  store(cache, tokens(320), {128, 320}, "one");
  const NodeId outer = *cache.pin("one", tokens(128));
  const NodeId inner = *cache.pin("one", tokens(320));
  save(cache, std::vector<CacheFilePin>{{.node = inner, .id = "i", .name = "inner"},
                                        {.node = outer, .id = "o", .seconds_left = 5.0}});
  HybridCache other = make();
  load(other);
  EXPECT_EQ(other.use().pinned_count, 0);
  ASSERT_EQ(pins_.size(), 2U);
  EXPECT_EQ(pins_[0].salt, "one");
  EXPECT_EQ(pins_[0].tokens, tokens(320));
  EXPECT_EQ(pins_[0].label.name, "inner");
  EXPECT_FALSE(pins_[0].label.seconds_left);
  EXPECT_EQ(pins_[1].tokens, tokens(128));
  EXPECT_EQ(pins_[1].label.id, "o");
  EXPECT_EQ(pins_[1].label.seconds_left, 5.0);
  EXPECT_TRUE(other.pin("one", tokens(320)));

  HybridCache none = HybridCache::create(shape_with(0)).value();
  EXPECT_EQ(load(none).bytes, 0U);
  EXPECT_TRUE(pins_.empty());
}

TEST_F(HybridCacheFile, WhereNothingCanBeWrittenTheOldFileStays) {
  HybridCache cache = make();
  EXPECT_FALSE(cache.save(directory_ / "no" / "such", kIdentity, {}, names_));
  EXPECT_EQ(cache.save(directory_, kIdentity, {}, names_).error().code,
            ErrorCode::invalid_argument);
  EXPECT_EQ(save(cache).bytes, 0U);  // an empty cache is a file, too
  EXPECT_EQ(load(cache).bytes, 0U);
}

}  // namespace
}  // namespace sluice
