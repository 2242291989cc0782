#include "engine/picture_shelf.h"

#include <gtest/gtest.h>

#include <cstring>

namespace sluice {
namespace {

VisionDigest digest_of(std::uint64_t n) {
  VisionDigest digest{};
  std::memcpy(digest.data(), &n, sizeof(n));
  return digest;
}

std::shared_ptr<const PictureRows> rows_of(std::size_t floats) {
  return std::make_shared<const PictureRows>(floats, 1.0F);
}

TEST(PictureShelf, APictureKeepsItsNameAndNoOtherHasIt) {
  PictureShelf shelf(1000);
  const TokenId a = shelf.name_of(digest_of(1));
  const TokenId b = shelf.name_of(digest_of(2));
  EXPECT_LT(a, 0);
  EXPECT_LT(b, 0);
  EXPECT_NE(a, b);
  EXPECT_EQ(shelf.name_of(digest_of(1)), a);
  EXPECT_EQ(shelf.name_of(digest_of(2)), b);
}

TEST(PictureShelf, TheLastUsedRowsStayWithinTheBudget) {
  PictureShelf shelf(100 * sizeof(float));
  const TokenId a = shelf.name_of(digest_of(1));
  const TokenId b = shelf.name_of(digest_of(2));
  const TokenId c = shelf.name_of(digest_of(3));
  shelf.keep(a, rows_of(40));
  shelf.keep(b, rows_of(40));
  EXPECT_NE(shelf.find(a), nullptr);  // used last
  shelf.keep(c, rows_of(40));
  shelf.check_invariants();
  EXPECT_NE(shelf.find(a), nullptr);
  EXPECT_EQ(shelf.find(b), nullptr);
  EXPECT_NE(shelf.find(c), nullptr);
  EXPECT_EQ(shelf.rows_bytes(), 80 * sizeof(float));
  shelf.keep(b, rows_of(101));  // more than the whole budget: nothing goes for it
  EXPECT_EQ(shelf.find(b), nullptr);
  EXPECT_NE(shelf.find(a), nullptr);
  shelf.keep(a, rows_of(100));  // in place of its own
  EXPECT_EQ(shelf.find(c), nullptr);
  shelf.check_invariants();
  shelf.forget_rows();
  EXPECT_EQ(shelf.find(a), nullptr);
  EXPECT_EQ(shelf.rows_bytes(), 0U);
  shelf.check_invariants();
}

TEST(PictureShelf, AForgottenPictureComesBackUnderANewName) {
  PictureShelf shelf(1000);
  const TokenId first = shelf.name_of(digest_of(0));
  shelf.keep(first, rows_of(10));
  for (std::uint64_t n = 1; n <= PictureShelf::kNamesMax; ++n) {
    shelf.name_of(digest_of(n));
  }
  shelf.check_invariants();
  EXPECT_EQ(shelf.find(first), nullptr);
  EXPECT_EQ(shelf.rows_bytes(), 0U);
  shelf.keep(first, rows_of(10));  // whoever still has the old name
  EXPECT_EQ(shelf.find(first), nullptr);
  EXPECT_LT(shelf.name_of(digest_of(0)), first);
}

}  // namespace
}  // namespace sluice
