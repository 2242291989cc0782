#include "platform/repeated_mapping.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <utility>
#include <vector>

#include "platform/memory_use.h"

namespace sluice {
namespace {

TEST(RepeatedMapping, RepeatsThePieceToTheEnd) {
  const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  std::vector<std::byte> piece(2 * page);
  for (std::size_t i = 0; i < piece.size(); ++i) {
    piece[i] = static_cast<std::byte>(i * 7 + i / 256);
  }
  RepeatedMapping first = RepeatedMapping::make(piece, 5 * page + 1).value();
  const RepeatedMapping mapping = std::move(first);
  EXPECT_TRUE(first.bytes().empty());
  ASSERT_EQ(mapping.bytes().size(), 6 * page);  // whole pieces
  for (std::size_t i = 0; i < mapping.bytes().size(); ++i) {
    ASSERT_EQ(mapping.bytes()[i], piece[i % piece.size()]) << i;
  }
}

TEST(RepeatedMapping, OfNothingIsEmptyAndOfTooMuchAnError) {
  const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  const std::vector<std::byte> piece(page);
  EXPECT_TRUE(RepeatedMapping::make(piece, 0).value().bytes().empty());
  const auto result = RepeatedMapping::make(piece, std::size_t{1} << 62);
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, ErrorCode::resource_exhausted);
}

TEST(MemoryUse, SaysSomethingSensible) {
  ASSERT_TRUE(available_memory());
  EXPECT_GT(*available_memory(), std::size_t{1} << 20);
  EXPECT_GT(peak_resident_bytes(), std::size_t{1} << 20);
}

}  // namespace
}  // namespace sluice
