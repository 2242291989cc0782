// BlockPool and StatePool under random programs, beside a model that is a plain map. Every item is
// filled with a stamp of its owner, so memory handed to two owners or not zeroed shows.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <map>
#include <random>

#include "cache/block_pool.h"
#include "cache/state_pool.h"

namespace sluice {
namespace {

constexpr std::size_t kBytes = 192;

bool all_equal(const std::byte* item, std::byte value) {
  return std::all_of(item, item + kBytes, [value](std::byte byte) { return byte == value; });
}

struct Owned {
  int references = 1;
  std::byte stamp{};
};

TEST(BlockPool, RandomProgramsAgreeWithAMap) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    std::mt19937_64 random(seed);
    const auto count = static_cast<std::int64_t>(random() % 40);
    auto pool = BlockPool::create({.block_bytes = kBytes, .block_count = count});
    ASSERT_TRUE(pool);
    std::map<BlockId, Owned> owned;
    for (int step = 0; step < 5000; ++step) {
      const auto picked = [&] {
        return std::next(owned.begin(), static_cast<std::ptrdiff_t>(random() % owned.size()));
      };
      const bool growing = (step / 500) % 2 == 0;  // fill, drain, fill ...
      switch (random() % 8 < (growing ? 5U : 2U) ? 0 : 1 + static_cast<int>(random() % 3)) {
        case 0: {
          const auto id = pool->allocate();
          ASSERT_EQ(id.has_value(), static_cast<std::int64_t>(owned.size()) < count);
          if (!id) {
            break;
          }
          ASSERT_FALSE(owned.contains(*id)) << "seed " << seed << " step " << step;
          std::byte* block = pool->data() + static_cast<std::size_t>(*id) * kBytes;
          ASSERT_TRUE(all_equal(block, std::byte{0})) << "seed " << seed << " step " << step;
          const auto stamp = static_cast<std::byte>(1 + random() % 255);
          std::memset(block, static_cast<int>(stamp), kBytes);
          owned[*id] = {1, stamp};
          break;
        }
        case 1:
          if (!owned.empty()) {
            const auto it = picked();
            pool->acquire(it->first);
            ++it->second.references;
          }
          break;
        default:
          if (!owned.empty()) {
            const auto it = picked();
            const std::byte* block = pool->data() + static_cast<std::size_t>(it->first) * kBytes;
            ASSERT_TRUE(all_equal(block, it->second.stamp)) << "seed " << seed << " step " << step;
            ASSERT_EQ(pool->reference_count(it->first), it->second.references);
            pool->release(it->first);
            if (--it->second.references == 0) {
              owned.erase(it);
            }
          }
          break;
      }
      ASSERT_EQ(pool->used_count(), static_cast<std::int64_t>(owned.size()));
      ASSERT_EQ(pool->free_count(), count - pool->used_count());
      pool->check_invariants();
    }
  }
}

TEST(StatePool, RandomProgramsAgreeWithAMap) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    std::mt19937_64 random(seed);
    const auto count = static_cast<std::int64_t>(1 + random() % 9);
    auto pool = StatePool::create({.slot_bytes = kBytes, .slot_count = count});
    ASSERT_TRUE(pool);
    std::map<SlotId, std::byte> owned;
    for (int step = 0; step < 3000; ++step) {
      if (random() % 2 == 0) {
        const auto id = pool->allocate();
        ASSERT_EQ(id.has_value(), static_cast<std::int64_t>(owned.size()) < count);
        if (id) {
          std::byte* slot = pool->data() + static_cast<std::size_t>(*id) * kBytes;
          ASSERT_TRUE(all_equal(slot, std::byte{0})) << "seed " << seed << " step " << step;
          owned[*id] = static_cast<std::byte>(1 + random() % 255);
          std::memset(slot, static_cast<int>(owned[*id]), kBytes);
        }
      } else if (!owned.empty()) {
        const auto it =
            std::next(owned.begin(), static_cast<std::ptrdiff_t>(random() % owned.size()));
        ASSERT_TRUE(
            all_equal(pool->data() + static_cast<std::size_t>(it->first) * kBytes, it->second));
        pool->free(it->first);
        owned.erase(it);
      }
      ASSERT_EQ(pool->used_count(), static_cast<std::int64_t>(owned.size()));
      pool->check_invariants();
    }
  }
}

TEST(BlockPool, ReusesBeforeItTouchesFreshMemory) {
  auto pool = BlockPool::create({.block_bytes = kBytes, .block_count = 1000});
  for (int i = 0; i < 100; ++i) {
    const BlockId a = *pool->allocate();
    const BlockId b = *pool->allocate();
    EXPECT_LT(std::max(a, b), 2);
    pool->release(i % 2 == 0 ? a : b);
    pool->release(i % 2 == 0 ? b : a);
  }
}

TEST(Pools, ItemsWithoutBytesWork) {
  auto blocks = BlockPool::create({.block_bytes = 0, .block_count = 2});
  ASSERT_TRUE(blocks);
  const BlockId first = *blocks->allocate();
  blocks->release(first);
  EXPECT_EQ(blocks->allocate(), first);
  EXPECT_NE(blocks->allocate(), std::nullopt);
  EXPECT_EQ(blocks->allocate(), std::nullopt);
}

TEST(Pools, ImpossibleSizesAreErrorsWithNumbers) {
  const auto overflow = BlockPool::create(
      {.block_bytes = std::numeric_limits<std::size_t>::max() / 2, .block_count = 3});
  ASSERT_FALSE(overflow);
  EXPECT_EQ(overflow.error().code, ErrorCode::resource_exhausted);
  EXPECT_NE(overflow.error().message.find("KV blocks: 3 items"), std::string::npos);
  const auto refused = StatePool::create({.slot_bytes = std::size_t{1} << 60, .slot_count = 2});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::resource_exhausted);
  EXPECT_NE(refused.error().message.find("state slots"), std::string::npos);
  const auto many = BlockPool::create({.block_bytes = 1, .block_count = std::int64_t{1} << 31});
  ASSERT_FALSE(many);
  EXPECT_EQ(many.error().code, ErrorCode::invalid_argument);
  EXPECT_FALSE(BlockPool::create({.block_bytes = 1, .block_count = -1}));
}

TEST(PoolsDeathTest, MisuseEndsTheProcess) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  auto pool = BlockPool::create({.block_bytes = 8, .block_count = 2});
  const BlockId id = *pool->allocate();
  pool->release(id);
  EXPECT_DEATH(pool->release(id), "reference_count");
  EXPECT_DEATH(pool->acquire(id), "reference_count");
  EXPECT_DEATH(pool->release(2), "invariant broken");
  auto slots = StatePool::create({.slot_bytes = 8, .slot_count = 1});
  EXPECT_DEATH(slots->free(0), "is_used");
}

}  // namespace
}  // namespace sluice
