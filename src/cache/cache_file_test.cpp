// The file: whatever is wrong with its bytes is found before any of them is used.
#include "cache/cache_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "cache/test_files.h"

namespace sluice {
namespace {

using ::testing::HasSubstr;

constexpr std::size_t kBlockBytes = 24;
constexpr std::size_t kSlotBytes = 40;

CacheFileIndex small_index() {
  CacheFileIndex index{.identity = {{"weights", "w1"}, {"numerics", "1"}},
                       .block_bytes = kBlockBytes,
                       .slot_bytes = kSlotBytes,
                       .namespaces = {"key", std::string("a\0b", 3)},
                       .nodes = std::vector<CacheFileIndex::Node>(3),
                       .checkpoints = {{.node = 2, .weight = 2.5, .uses = 1.0},
                                       {.node = 0, .weight = 1.0, .uses = 0.0}},
                       .pins = {{.checkpoint = 1, .id = "p", .name = "docs", .seconds_left = 3.5}}};
  index.nodes[0].parent = -2;
  index.nodes[1].parent = 0;
  index.nodes[2].parent = -1;
  for (std::size_t i = 0; i < index.nodes.size(); ++i) {
    index.nodes[i].tokens.fill(static_cast<std::int32_t>(100 + i));
  }
  index.names = {{.token = -9, .content = "nine"}, {.token = -1, .content = {}}};
  index.nodes[1].tokens[5] = -9;
  return index;
}

std::vector<std::byte> content(std::size_t part, std::size_t bytes) {
  return std::vector<std::byte>(bytes, static_cast<std::byte>(part * 37 + 1));
}

// Whether all of the file can be read; its index and bytes are those of write_file() then.
Result<void> read_all(const std::filesystem::path& path) {
  const CacheFileReader file = SLUICE_TRY(CacheFileReader::open(path));
  EXPECT_EQ(file.index(), small_index());
  for (std::size_t i = 0; i < 3; ++i) {
    std::vector<std::byte> block(kBlockBytes);
    SLUICE_TRY(file.read_block(i, block));
    EXPECT_EQ(block, content(i, kBlockBytes));
  }
  for (std::size_t i = 0; i < 2; ++i) {
    std::vector<std::byte> state(kSlotBytes);
    SLUICE_TRY(file.read_state(i, state));
    EXPECT_EQ(state, content(3 + i, kSlotBytes));
  }
  return {};
}

class CacheFileTest : public CacheFolderTest {
 protected:
  std::filesystem::path write_file(std::uint64_t id = 77) {
    auto file = CacheFileWriter::create(path_, small_index(), id);
    EXPECT_TRUE(file.has_value());
    for (std::size_t i = 0; i < 5; ++i) {
      EXPECT_TRUE(file->write(content(i, i < 3 ? kBlockBytes : kSlotBytes)).has_value());
    }
    EXPECT_TRUE(file->commit().has_value());
    return path_;
  }
};

TEST_F(CacheFileTest, ComesBackAsWritten) {
  write_file();
  EXPECT_TRUE(read_all(path_).has_value());
  EXPECT_EQ(std::filesystem::status(path_).permissions(),
            std::filesystem::perms::owner_read | std::filesystem::perms::owner_write);
}

TEST_F(CacheFileTest, EveryTruncationIsRefused) {
  write_file();
  const std::string whole = read();
  for (std::size_t size = whole.size(); size-- > 0;) {
    std::filesystem::resize_file(path_, size);
    const auto file = CacheFileReader::open(path_);
    ASSERT_FALSE(file.has_value()) << size;
    EXPECT_EQ(file.error().code, ErrorCode::corrupt_data) << size;
  }
  write(whole + '\0');
  EXPECT_EQ(CacheFileReader::open(path_).error().code, ErrorCode::corrupt_data);
}

TEST_F(CacheFileTest, EveryFlippedBitIsFound) {
  write_file();
  const std::string whole = read();
  for (std::size_t at = 0; at < whole.size(); ++at) {
    for (int bit = 0; bit < 8; ++bit) {
      write_byte(at, static_cast<char>(whole[at] ^ (1 << bit)));
      const auto result = read_all(path_);
      ASSERT_FALSE(result.has_value()) << at << ' ' << bit;
      const bool in_format = at >= 8 && at < 12;
      EXPECT_EQ(result.error().code, in_format ? ErrorCode::unsupported : ErrorCode::corrupt_data);
    }
    write_byte(at, whole[at]);
  }
}

TEST_F(CacheFileTest, PartsOfAnotherFileOrPlaceAreFound) {
  write_file(1);
  const std::string first = read();
  write_file(2);
  const std::string second = read();
  const std::size_t states = 2 * (kSlotBytes + 4);
  write(first.substr(0, first.size() - states) + second.substr(second.size() - states));
  EXPECT_EQ(read_all(path_).error().code, ErrorCode::corrupt_data);
  const std::size_t blocks = first.size() - states - 3 * (kBlockBytes + 4);
  const std::string block0 = first.substr(blocks, kBlockBytes + 4);
  const std::string block1 = first.substr(blocks + kBlockBytes + 4, kBlockBytes + 4);
  write(first.substr(0, blocks) + block1 + block0 + first.substr(blocks + 2 * (kBlockBytes + 4)));
  EXPECT_EQ(read_all(path_).error().code, ErrorCode::corrupt_data);
}

TEST_F(CacheFileTest, ForeignFilesAreNamedAsSuch) {
  write("{\"this\": \"is a JSON file of some length\"}");
  EXPECT_THAT(CacheFileReader::open(path_).error().message, HasSubstr("not a cache file"));
  write_file();
  std::string newer = read();
  newer[8] = 3;
  write(newer);
  EXPECT_THAT(CacheFileReader::open(path_).error().message,
              HasSubstr("format 3, this program reads format 2"));
  EXPECT_EQ(CacheFileReader::open(directory_ / "missing").error().code, ErrorCode::not_found);
  EXPECT_EQ(CacheFileReader::open(directory_).error().code, ErrorCode::invalid_argument);
}

// What a checksum cannot find: an index that was written wrong.
TEST(CacheFileIndexTest, ContradictionsAreFound) {
  EXPECT_EQ(*parse_cache_file_index(encode_cache_file_index(small_index())), small_index());
  const auto problem = [](auto change) {
    CacheFileIndex index = small_index();
    change(index);
    const auto parsed = parse_cache_file_index(encode_cache_file_index(index));
    return parsed ? std::string("none") : parsed.error().message;
  };
  using Index = CacheFileIndex;
  EXPECT_THAT(problem([](Index& index) { index.nodes[1].parent = 1; }), HasSubstr("no parent"));
  EXPECT_THAT(problem([](Index& index) { index.nodes[0].parent = -3; }), HasSubstr("no parent"));
  EXPECT_THAT(problem([](Index& index) { index.nodes[0].parent = INT32_MIN; }),
              HasSubstr("no parent"));
  EXPECT_THAT(problem([](Index& index) { index.nodes[1].tokens[6] = -8; }), HasSubstr("no name"));
  EXPECT_THAT(problem([](Index& index) { index.names[1].token = -9; }), HasSubstr("in order"));
  EXPECT_THAT(problem([](Index& index) { index.names[1].token = 0; }), HasSubstr("in order"));
  EXPECT_THAT(problem([](Index& index) { index.checkpoints[0].node = 3; }), HasSubstr("not there"));
  EXPECT_THAT(problem([](Index& index) { index.checkpoints[1].node = 2; }),
              HasSubstr("two states"));
  EXPECT_THAT(problem([](Index& index) { index.checkpoints[0].weight = -1.0; }),
              HasSubstr("out of range"));
  EXPECT_THAT(problem([](Index& index) { index.checkpoints[0].uses = NAN; }),
              HasSubstr("out of range"));
  EXPECT_THAT(problem([](Index& index) { index.pins[0].checkpoint = 2; }), HasSubstr("not there"));
  EXPECT_THAT(problem([](Index& index) { index.pins.push_back(index.pins[0]); }),
              HasSubstr("pinned twice"));
  const std::string bytes = encode_cache_file_index(small_index());
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_FALSE(parse_cache_file_index(std::string_view(bytes).substr(0, size))) << size;
  }
  EXPECT_FALSE(parse_cache_file_index(bytes + "x"));
}

TEST(CacheFileIndexTest, ADifferenceIsNamedWithBothValues) {
  const CacheIdentity here{{"weights", "w1"}, {"numerics", "2"}};
  EXPECT_TRUE(check_cache_identity(here, here));
  EXPECT_THAT(check_cache_identity({{"weights", "w1"}, {"numerics", "1"}}, here).error().message,
              HasSubstr("numerics: saved with 1, here 2"));
  EXPECT_THAT(check_cache_identity({{"weights", "w1"}}, here).error().message,
              HasSubstr("numerics: saved with none, here 2"));
  EXPECT_THAT(check_cache_identity(here, {{"weights", "w1"}}).error().message,
              HasSubstr("numerics: saved with 2, here none"));
  EXPECT_EQ(check_cache_identity(here, {}).error().code, ErrorCode::unsupported);
}

}  // namespace
}  // namespace sluice
